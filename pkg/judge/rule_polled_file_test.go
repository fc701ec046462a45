package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// tried is a path that was tried n times.
func tried(path, errno string, n uint64, when model.Interval) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, when, &model.Missing{Missing: &event.Missing{Name: "openat", Path: path, Error: errno, Count: n}})
	}
}

// looked is the same of an agent.
func looked(path string, n uint64, when model.Interval) func(*model.Connection) {
	return did(&model.Fact{
		When: when, What: &model.Missing{Missing: &event.Missing{Name: "openat", Path: path, Error: "ENOENT", Count: n}},
		Attribution: &model.Attribution{Evidence: model.Candidate},
	})
}

func TestAPolledFile(t *testing.T) {
	locked := func(l *event.LockFile) func(*model.Call) {
		return func(c *model.Call) { c.LockFiles = map[string]*event.LockFile{"/run/p.lock": l} }
	}
	lock := func(change ...func(*model.Image)) *model.Operation {
		im := seen(plugin("p", 0, 1000), slept(from(10, 990)), tried("/run/p.lock", "EEXIST", 11, from(10, 910)))
		for _, f := range change {
			f(im)
		}
		return add(im)
	}
	const tries = `^980ms of 1s: lock file /run/p.lock existed; plugin p tried to create it at least 11 times ` +
		`\(openat: EEXIST\), about every 90ms`
	unknown := func(written time.Duration) func(*model.Call) { return locked(&event.LockFile{Written: int64(written)}) }
	rulings(t, map[string]ruling{
		"a lock file": {
			op: lock(), cause: CauseLockFile, says: tries + "$",
			remedy: `^run fuser -v /run/p.lock; if a process holds the file open and hangs, kill the process; ` +
				`if no process holds it open, run rm /run/p.lock$`,
		},
		"that is old": {
			op: but(lock(), unknown(-3*time.Hour)), cause: CauseLockFile,
			says: tries + "; it was written 3h0m0s before the call$", remedy: `^run fuser`,
		},
		"that was written during the call": {
			op: but(lock(), unknown(500*time.Millisecond)), cause: CauseLockFile, says: tries + "$",
		},
		"a lock directory": {
			op: lock(func(im *model.Image) {
				for _, m := range model.Each[*model.Missing](im.Facts) {
					m.Name = "mkdir"
				}
			}),
			cause: CauseLockFile, says: `\(mkdir: EEXIST\)`, remedy: `; if no process holds it open, run rmdir /run/p.lock`,
		},
		"whose process is gone": {
			op:    but(lock(), locked(&event.LockFile{Maker: &event.Actor{PID: 99999}, Gone: true})),
			cause: CauseLockFile, says: tries + "; process 99999 wrote it and has exited$", remedy: `^run fuser -v /run/p.lock; if .*, run rm /run/p.lock, because the process that wrote it \(pid 99999\) has exited$`,
		},
		"whose process is there": {
			op:    but(lock(), locked(&event.LockFile{Maker: &event.Actor{PID: 12, Name: "p"}})),
			cause: CauseLockFile, says: tries + `; p \(pid 12\) wrote it$`, remedy: `^kill p \(pid 12\) if it hangs; otherwise`,
		},
		"for which the plugin gave up": {
			op:    lock(func(im *model.Image) { im.Code = 1 }, wrote("no store")),
			cause: CauseLockFile, says: `^plugin p failed \(code 11\): "no store"; 980ms`, remedy: `^run fuser`,
		},
		"polled more often than tries are reported": {
			op: add(seen(plugin("p", 0, 1000), slept(from(10, 990)), tried("/run/p.lock", "EEXIST", 91, from(10, 910)),
				func(im *model.Image) { im.Code = 1 }, wrote("no store"))),
			cause: CauseLockFile, says: `; 980ms .* about every 10ms$`, remedy: `^run fuser`,
		},
		"a file that comes": {
			op:    add(seen(plugin("p", 0, 1000), slept(from(0, 950)), tried("/run/ready", "ENOENT", 10, from(10, 910)))),
			cause: CauseMissingFile,
			says: `^950ms of 1s: file /run/ready was missing; plugin p tried to find it ` +
				`at least 10 times \(openat: ENOENT\), about every 100ms`,
			remedy: `^start the program that writes /run/ready, or read its log if it runs; if p should use another file`,
		},
		"a script that runs sleep": {
			op:    add(seen(plugin("p", 0, 1000, ran("sleep", 10, 450), ran("sleep", 460, 900)), tried("/run/ready", "ENOENT", 3, from(5, 905)))),
			cause: CauseMissingFile, says: `file /run/ready was missing`, remedy: `^start the program`,
		},
		"the first tries of which were not seen": {
			op:    add(seen(plugin("p", 0, 1000), slept(from(0, 1000)), tried("/run/ready", "ENOENT", 3, from(400, 990)))),
			cause: CauseMissingFile, says: `^1s of 1s: file /run/ready was missing`,
		},
		// A file that is missing beside a wait for something else is no cause.
		"beside a call to an agent": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(10, 990)), tried("/etc/gai.conf", "ENOENT", 3, from(5, 905)))),
			cause: CauseAgent, says: `waited for /run/a.sock`,
		},
		"by an agent": {
			op:    calling(looked("/run/ready", 4, from(10, 980))),
			cause: CauseMissingFile, says: `^970ms of 1s: file /run/ready was missing; .* tried to find it at least 4 times`, remedy: `^start the program that writes /run/ready`,
		},
		// As cilium-agent looked for health-endpoint.pid.
		"twice, by an agent": {
			op: calling(looked("/run/health.pid", 2, from(10, 980))), cause: CauseAgent, says: `waited for`, remedy: `^read`,
		},
		"every six seconds, by an agent": {
			op: add(seen(plugin("p", 0, 30000), dialled("unix", "/run/a.sock", from(0, 29900), served(nil, nil),
				looked("/run/health.pid", 5, from(100, 24100))))),
			cause: CauseAgent, says: `waited for`, remedy: `^read`,
		},
		"for a small part of the sleep": {
			op:    add(seen(plugin("p", 0, 1000), slept(from(0, 1000)), tried("/run/ready", "ENOENT", 3, from(0, 200)))),
			cause: CauseSleep, says: `slept`,
		},
		"by a command that copes with the error": {
			op: add(seen(
				plugin("p", 0, 1000, ran("mkdir", 1, 5), ran("sleep", 10, 490), ran("mkdir", 491, 495), ran("sleep", 500, 980)),
				func(im *model.Image) {
					fact(im, from(1, 981), &model.Missing{Missing: &event.Missing{
						Process: "mkdir", Name: "mkdir", Path: "/run", Error: "EEXIST", Count: 3,
					}})
				})),
			cause: CauseCommand, says: `ran sleep`, remedy: `^remove the command sleep`,
		},
		"where a search in PATH does not find what runs from elsewhere": {
			op:    add(seen(plugin("p", 0, 1000, ran("clang", 10, 20)), slept(from(30, 990)), tried("/opt/bin/clang", "ENOENT", 10, from(31, 910)))),
			cause: CauseSleep, says: `slept`,
		},
		"where an agent searches PATH for what it runs, perhaps for others": {
			op: calling(looked("/usr/local/bin/true", 10, from(10, 980)), func(c *model.Connection) {
				c.Work.Shared.Children = []*model.Image{ran("true", 20, 21)}
			}),
			cause: CauseAgent, says: `waited for agentd at /run/a.sock$`, remedy: `^read`,
		},
		"where an agent searches PATH for a program that it was not seen to run": {
			op:    calling(looked("/usr/local/sbin/true", 10, from(10, 980)), looked("/usr/local/bin/true", 10, from(11, 981))),
			cause: CauseAgent, says: `waited for agentd at /run/a.sock$`, remedy: `^read`,
		},
		"where a plugin searches PATH": {
			op: add(seen(plugin("p", 0, 1000), slept(from(10, 990)),
				tried("/usr/local/sbin/true", "ENOENT", 10, from(10, 910)), tried("/usr/bin/true", "ENOENT", 10, from(11, 911)))),
			cause: CauseSleep, says: `^980ms of 1s: plugin p slept$`,
		},
		"control: a program that one directory lacks": {
			op:    calling(looked("/opt/cni/bin/multus", 10, from(10, 980)), looked("/etc/multus", 3, from(10, 400))),
			cause: CauseMissingFile, says: `file /opt/cni/bin/multus was missing`,
		},
		"control: a delegated plugin that two directories of CNI_PATH lack": {
			op: calling(looked("/opt/cni/bin/multus", 10, from(10, 980)),
				looked("/home/kubernetes/bin/multus", 10, from(11, 981))),
			cause: CauseMissingFile, says: `file /home/kubernetes/bin/multus was missing`,
		},
		"control: the directory of the plugin itself": {
			op: add(seen(plugin("p", 0, 1000), func(im *model.Image) { im.File = "/home/kubernetes/bin/p" }, slept(from(10, 990)),
				tried("/home/kubernetes/bin/next", "ENOENT", 10, from(10, 910)), tried("/srv/bin/next", "ENOENT", 10, from(11, 911)))),
			cause: CauseMissingFile, says: `file /srv/bin/next was missing`,
		},
		"control: directories that only end like those of programs": {
			op: add(seen(plugin("p", 0, 1000), slept(from(10, 990)),
				tried("/run/robin/ready", "ENOENT", 10, from(10, 910)), tried("/srv/bin/ready", "ENOENT", 10, from(11, 911)))),
			cause: CauseMissingFile, says: `file /srv/bin/ready was missing`,
		},
		"beside a command that works": {
			op:    add(seen(plugin("p", 0, 1000, ran("tc", 10, 990)), tried("/run/ready", "ENOENT", 3, from(5, 905)))),
			cause: CauseCommand, says: `ran tc`,
		},
	})
}
