package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestSleeping(t *testing.T) {
	const agent = "/run/a.sock"
	asks := func(at ...int64) (all []func(*model.Image)) {
		for _, t := range at {
			all = append(all, dialled("unix", agent, from(t, t+2)))
		}
		return all
	}
	adds := func(address string) func(*model.Image) {
		return func(im *model.Image) {
			fact(im, from(5, 6), &model.Request{Request: &event.Request{Object: event.ObjectAddress, Verb: event.VerbAdd, Address: address}})
		}
	}
	sleeps := []func(*model.Image){slept(from(13, 200)), slept(from(203, 480))}
	rulings(t, map[string]ruling{
		"a plugin polls": {op: add(seen(plugin("p", 0, 500), slept(from(10, 480)))), cause: CauseSleep, says: `^470ms of 500ms: plugin p slept$`, remedy: `^shorten the plugin's poll`},
		"a plugin polls until the runtime kills it": {
			op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), func(im *model.Image) { im.Signal = "SIGKILL" })), cause: CauseSleep,
			says: `plugin p slept; then plugin p was killed$`, remedy: `^read plugin p's log of that time`,
		},
		"control: another plugin is killed after it": {
			op:    add(seen(plugin("p", 0, 500), slept(from(10, 480))), with(plugin("q", 500, 520), func(im *model.Image) { im.Signal = "SIGKILL" })),
			cause: CauseSleep, says: `plugin p slept; then plugin q was killed$`, remedy: `^shorten the plugin's poll`,
		},
		"a plugin asks an agent again": {
			op: add(seen(plugin("p", 0, 500), append(asks(10, 201, 481), sleeps...)...)), cause: CauseSleep,
			says: `^464ms of 500ms: plugin p slept between its 3 requests of /run/a.sock$`, remedy: `^read the log of the program that listens at /run/a.sock`,
		},
		"the second thread of a sleep wakes late": {
			op: add(seen(plugin("p", 0, 2200), append(asks(10, 715, 1420), slept(from(13, 714)), slept(from(12, 719)),
				slept(from(718, 1418)), slept(from(717, 1424)), slept(from(1422, 2122)))...)), cause: CauseSleep,
			says: `plugin p slept between its 3 requests of /run/a.sock$`,
		},
		"control: it asked all before it slept": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 8), sleeps...)...)), cause: CauseSleep, says: `plugin p slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: one sleep before its last request": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 7, 490), slept(from(13, 480)))...)), cause: CauseSleep, says: `plugin p slept$`,
		},
		"a plugin polls after it added an IPv6 address": {
			op: add(seen(plugin("p", 0, 2000), append(sleeps, adds("fd00::5/64"), slept(from(490, 1980)))...)), cause: CauseSleep,
			says: `plugin p slept \(3 times\)$`, remedy: `^read plugin p's log: .* detection of fd00::5/64; if it did`,
		},
		"control: an IPv4 address": {
			op: add(seen(plugin("p", 0, 500), append(sleeps, adds("10.0.0.5/24"))...)), cause: CauseSleep, says: `slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: longer than detection lasts": {
			op: add(seen(plugin("p", 0, 5000), adds("fd00::5/64"), slept(from(10, 4900)))), cause: CauseSleep, says: `slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: a thread of one that computes": {op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), cpu(490))), cause: CausePlugin},
	})
}
