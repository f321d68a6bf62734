// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fleet is the testers of all nodes, by the name of their pod.
type fleet struct {
	rails []string
	delay time.Duration
	lock  sync.Mutex
	pods  map[string]*tester
}

func newFleet(rails []string, delay time.Duration) *fleet {
	return &fleet{rails: rails, delay: delay, pods: map[string]*tester{}}
}

func (f *fleet) find(pod string) *tester {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.pods[pod]
}

func (f *fleet) add(pod string, number int, now time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.pods[pod] == nil {
		f.pods[pod] = newTester(number, f.rails, now)
	}
}

func (f *fleet) remove(pod string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.pods, pod)
}

// entry is a part of the log and when it is printed, which may be in the future.
type entry struct {
	at   time.Time
	text string
}

// tester prints what roles/rdma_validate/files/tester.sh prints in a healthy fabric, at the same times.
type tester struct {
	lock    sync.Mutex
	log     []entry
	changed chan struct{}
}

func newTester(number int, rails []string, now time.Time) *tester {
	return &tester{log: []entry{{now, description(number, rails)}}, changed: make(chan struct{})}
}

func description(number int, rails []string) string {
	var text strings.Builder
	fmt.Fprintln(&text, "=== gpufabric describe v1")
	for at, rail := range rails {
		fmt.Fprintf(&text, "rail %s device=mlx5_%d port=1 netdev=net%d gid=3 gid_type=\"RoCE v2\" address=10.%d.%d.%d "+
			"mtu=4096 rate=\"400 Gb/sec (4X NDR)\" numa=0 cpus=0-15 local_cpus=0-15\n",
			rail, at, at+1, 64+at, number>>8, number&255)
	}
	fmt.Fprintf(&text, "host memlock=unlimited perftest=25.01 control=- clock=tsc machine_id=%032x\n", number)
	fmt.Fprintf(&text, "=== gpufabric described %d\n", len(rails))
	return text.String()
}

var deliver = regexp.MustCompile(`^read -r up _ </proc/uptime; echo ready; ` +
	`head -c (\d+) \| sh /gpufabric/tester\.sh deliver /mailbox (\d+) "\$up"$`)

// run is the command by which lines are handed out: it says that it is ready and reads as many bytes as it was told.
func (t *tester) run(command []string, in io.Reader, out io.Writer) error {
	if len(command) != 3 || command[0] != "sh" || command[1] != "-c" {
		return fmt.Errorf("unknown command %q", command)
	}
	words := deliver.FindStringSubmatch(command[2])
	if words == nil {
		return fmt.Errorf("unknown command %q", command)
	}
	size, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return err
	}
	return t.play(string(text), time.Now())
}

// play puts into the log what a batch will print: a frame for every line, at the end of its round.
func (t *tester) play(batch string, now time.Time) error {
	lines := strings.Split(strings.TrimSuffix(batch, "\n"), "\n")
	var number, slot int
	var startIn float64
	if _, err := fmt.Sscanf(lines[0], "BATCH %d %f %d", &number, &startIn, &slot); err != nil {
		return fmt.Errorf("the batch does not begin with BATCH: %w", err)
	}
	count := len(lines) - 2
	if count < 0 || lines[len(lines)-1] != fmt.Sprintf("END %d", count) {
		return fmt.Errorf("the batch did not arrive complete")
	}
	begin := now.Add(time.Duration(startIn * float64(time.Second)))
	entries := []entry{{now, fmt.Sprintf("=== gpufabric batch %d begin %d\n", number, count)}}
	last := now
	for _, line := range lines[1 : len(lines)-1] {
		words := strings.Fields(line)
		round, err := strconv.Atoi(words[0])
		if err != nil || len(words) < 6 {
			return fmt.Errorf("unknown line %q", line)
		}
		// A tester ends what runs two seconds before the next round.
		last = begin.Add(time.Duration((round+1)*slot-2) * time.Second)
		entries = append(entries, entry{last, frame(words)})
	}
	entries = append(entries, entry{last, fmt.Sprintf("=== gpufabric batch %d done %d 0\n", number, count)})
	t.lock.Lock()
	defer t.lock.Unlock()
	t.log = append(t.log, entries...)
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

func frame(words []string) string {
	return fmt.Sprintf("=== gpufabric test %s rc=0 start=1 seconds=11 late=0.03 ran=11.20 exchange=plain memory=host\n"+
		"link rate=\"400 Gb/sec (4X NDR)\" state=up carrier=1 mtu=9000\n"+
		"                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"+
		" Number of qps   : 1\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n"+
		" Mtu             : 4096[B]\n Link type       : Ethernet\n"+
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"+
		" 65536      99999            0.00               391.52             0.700000\n"+
		"=== gpufabric end\n", strings.Join(words[:4], " "))
}

// copyLog writes what the tester has printed since then; with follow also what it will print, until ctx is done.
func (t *tester) copyLog(ctx context.Context, since time.Time, follow bool, write func(string)) {
	for next := 0; ; {
		text, at, wait, changed := t.printed(next, since, time.Now())
		next = at
		if text != "" {
			write(text)
		}
		if !follow {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-wait:
		}
	}
}

// printed returns what was printed from entry next on, the entry after that, and what to wait for.
func (t *tester) printed(next int, since, now time.Time) (string, int, <-chan time.Time, <-chan struct{}) {
	t.lock.Lock()
	defer t.lock.Unlock()
	var text strings.Builder
	for ; next < len(t.log) && !t.log[next].at.After(now); next++ {
		if !t.log[next].at.Before(since) {
			text.WriteString(t.log[next].text)
		}
	}
	var wait <-chan time.Time
	if next < len(t.log) {
		wait = time.After(t.log[next].at.Sub(now))
	}
	return text.String(), next, wait, t.changed
}
