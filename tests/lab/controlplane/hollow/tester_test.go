// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// one is the tester of node 258, whose peer in lines is that of node 2.
func one(start time.Time) *tester {
	fleet := newFleet([]string{"rail0"}, 0)
	fleet.add("peer", 2, start)
	fleet.add("own", 258, start)
	return fleet.find("own")
}

const lines = "0 rail0 server 10.64.0.2 18500 write_bw -D 2\n1 rail0 client 10.64.0.2 18501 write_bw -D 2\nEND 2\n"

func printedAt(t *tester, since, now time.Time) string {
	text, _, _, _ := t.printed(0, since, now)
	return text
}

func TestFramesAppearAtTheEndOfTheirRounds(t *testing.T) {
	start := time.Now()
	one := one(start)
	if err := one.play("BATCH 3 20       10\n"+lines, start); err != nil {
		t.Fatal(err)
	}
	for seconds, frames := range map[int]int{0: 0, 27: 0, 28: 1, 37: 1, 38: 2} {
		text := printedAt(one, time.Time{}, start.Add(time.Duration(seconds)*time.Second))
		if got := strings.Count(text, "=== gpufabric end\n"); got != frames {
			t.Errorf("after %d s there are %d frames, not %d", seconds, got, frames)
		}
		if done := strings.Contains(text, "=== gpufabric batch 3 done 2 0\n"); done != (frames == 2) {
			t.Errorf("after %d s: done is %v", seconds, done)
		}
	}
}

func TestLogSinceLeavesOutWhatIsOlder(t *testing.T) {
	start := time.Now()
	one := one(start)
	later := start.Add(time.Minute)
	if err := one.play("BATCH 1 5        10\n"+lines, later); err != nil {
		t.Fatal(err)
	}
	all := printedAt(one, time.Time{}, later.Add(time.Minute))
	if !strings.HasPrefix(all, "=== gpufabric describe v1\nrail rail0 ") || !strings.Contains(all, " address=10.64.1.2 ") {
		t.Errorf("no description: %s", all)
	}
	if text := printedAt(one, later, later.Add(time.Minute)); !strings.HasPrefix(text, "=== gpufabric batch 1 begin 2\n") {
		t.Errorf("not from the batch on: %s", text)
	}
}

func TestLinesThatAreNotComplete(t *testing.T) {
	one := one(time.Now())
	for _, batch := range []string{"", "BATCH 1 5 10\n", "BATCH 1 5 10\n0 rail0 client\nEND 2\n", "0 rail0\nEND 1\n"} {
		if err := one.play(batch, time.Now()); err == nil {
			t.Errorf("taken: %q", batch)
		}
	}
}

func TestTheCommandOfTheTransport(t *testing.T) {
	one := one(time.Now())
	batch := "BATCH 7 5.00     10\n" + lines
	var out bytes.Buffer
	command := []string{"sh", "-c", `read -r up _ </proc/uptime; echo ready; head -c 116 | sh /gpufabric/tester.sh deliver /mailbox 7 "$up"`}
	if len(batch) != 116 {
		t.Fatalf("the batch has %d bytes", len(batch))
	}
	if err := one.run(command, strings.NewReader(batch+"more"), &out); err != nil || out.String() != "ready\n" {
		t.Errorf("%v, said %q", err, out.String())
	}
	if err := one.run([]string{"sh", "-c", "reboot"}, strings.NewReader(""), &out); err == nil {
		t.Error("it ran another command")
	}
}

func TestATestWhosePeerIsGoneFailsAndThoseBeforeStayMeasured(t *testing.T) {
	start := time.Now()
	one := one(start)
	for _, pod := range []string{"peer", "own"} {
		if err := one.fleet.find(pod).play("BATCH 1 5        10\n"+lines, start); err != nil {
			t.Fatal(err)
		}
	}
	one.fleet.remove("peer", start.Add(14*time.Second))
	// Its successor does not know the batch.
	one.fleet.add("peer again", 2, start.Add(15*time.Second))
	text := printedAt(one, start, start.Add(time.Minute))
	if !strings.Contains(text, "=== gpufabric test 0 rail0 server 10.64.0.2 rc=0 ") {
		t.Errorf("the test before: %s", text)
	}
	refused := "=== gpufabric test 1 rail0 client 10.64.0.2 rc=1 "
	if !strings.Contains(text, refused) || !strings.Contains(text, "\nCouldn't connect to 10.64.0.2:18501\n") {
		t.Errorf("the test after: %s", text)
	}
}
