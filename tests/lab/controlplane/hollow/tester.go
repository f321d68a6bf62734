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

// fleet is the testers by the name of their pod, and the last one of each node by its number. Its lock is also that of the testers.
type fleet struct {
	rails []string
	delay time.Duration
	lock  sync.Mutex
	pods  map[string]*tester
	nodes map[int]*tester
}

func newFleet(rails []string, delay time.Duration) *fleet {
	return &fleet{rails: rails, delay: delay, pods: map[string]*tester{}, nodes: map[int]*tester{}}
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
		f.pods[pod] = newTester(f, number, now)
		f.nodes[number] = f.pods[pod]
	}
}

// remove ends a tester. What the others have measured with it until now stays measured.
func (f *fleet) remove(pod string, now time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	gone := f.pods[pod]
	if gone == nil {
		return
	}
	for _, one := range f.pods {
		one.settle(now)
	}
	delete(f.pods, pod)
	if f.nodes[gone.number] == gone {
		delete(f.nodes, gone.number)
	}
}

// plays reports whether the tester of a node takes part in a batch. The caller has the lock.
func (f *fleet) plays(number, batch int) bool {
	found := f.nodes[number]
	return found != nil && found.batch == batch
}

// entry is a part of the log and when it is printed, which may be in the future. That of a test has the words of its
// line, and gets its text when it is due: that depends on the peer.
type entry struct {
	at   time.Time
	text string
	test []string
}

// tester prints what roles/rdma_validate/files/tester.sh prints in a healthy fabric, at the same times.
type tester struct {
	fleet   *fleet
	number  int
	batch   int
	settled int
	log     []entry
	changed chan struct{}
}

func newTester(fleet *fleet, number int, now time.Time) *tester {
	first := entry{at: now, text: description(number, fleet.rails)}
	return &tester{fleet: fleet, number: number, log: []entry{first}, changed: make(chan struct{})}
}

// settle gives the entries that are due their text. The caller has the lock.
func (t *tester) settle(now time.Time) {
	for ; t.settled < len(t.log) && !t.log[t.settled].at.After(now); t.settled++ {
		one := &t.log[t.settled]
		switch {
		case one.test == nil:
		case t.fleet.plays(numberOf(one.test[3]), t.batch):
			one.text = frame(one.test)
		default:
			one.text = lonelyFrame(one.test)
		}
	}
}

// numberOf is the number of the node that has an address of description; 0 when it is none of them.
func numberOf(address string) int {
	var net, rail, high, low int
	if _, err := fmt.Sscanf(address, "%d.%d.%d.%d", &net, &rail, &high, &low); err != nil {
		return 0
	}
	return high<<8 | low
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
	entries := []entry{{at: now, text: fmt.Sprintf("=== gpufabric batch %d begin %d\n", number, count)}}
	last := now
	for _, line := range lines[1 : len(lines)-1] {
		words := strings.Fields(line)
		round, err := strconv.Atoi(words[0])
		if err != nil || len(words) < 6 {
			return fmt.Errorf("unknown line %q", line)
		}
		// A tester ends what runs two seconds before the next round.
		last = begin.Add(time.Duration((round+1)*slot-2) * time.Second)
		entries = append(entries, entry{at: last, test: words})
	}
	entries = append(entries, entry{at: last, text: fmt.Sprintf("=== gpufabric batch %d done %d 0\n", number, count)})
	t.fleet.lock.Lock()
	defer t.fleet.lock.Unlock()
	t.settle(now)
	t.batch = number
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

// lonelyFrame is that of a test whose peer is gone: a client is refused, a server waits until the tester ends it.
func lonelyFrame(words []string) string {
	rc, text := 124, "\n************************************\n* Waiting for client to connect... *\n"+
		"************************************\n"
	if words[2] == "client" {
		rc, text = 1, fmt.Sprintf("Couldn't connect to %s:%s\nUnable to open file descriptor for socket connection\n"+
			" Unable to init the socket connection\n", words[3], words[4])
	}
	return fmt.Sprintf("=== gpufabric test %s rc=%d start=1 seconds=1 late=0.03 ran=1.00 exchange=plain memory=host\n"+
		"link rate=\"400 Gb/sec (4X NDR)\" state=up carrier=1 mtu=9000\n%s=== gpufabric end\n",
		strings.Join(words[:4], " "), rc, text)
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
	t.fleet.lock.Lock()
	defer t.fleet.lock.Unlock()
	t.settle(now)
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
