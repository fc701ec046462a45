//go:build linux

package scenarios

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// acts are real chained plugins that each do one thing at ADD. They are this program, selected by file name.
var acts = map[string]func() error{
	"sleeper": func() error { time.Sleep(time.Second); return nil },
	"wireguard": func() error {
		for until := time.Now().Add(time.Second); time.Now().Before(until); {
		}
		return nil
	},
	"overlay": func() error { // connects repeatedly to a missing agent
		for range 20 {
			c, err := net.Dial("unix", "/run/cniscope-scenario/nobody.sock")
			if err == nil {
				c.Close()
			}
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	},
	"idler":       func() error { return nil },
	"stopper":     stopRuntime,
	"parked":      func() error { _, err := os.ReadFile(stillDir + "/park"); return err },
	"hanger":      func() error { time.Sleep(3 * time.Second); return nil },
	"sharer":      func() error { return share(0, 300*time.Millisecond) },
	"cilium":      putEndpoint,
	"binder":      bind(fuseDir),
	"quickbinder": bind(fuseDir + "-control"),
}

// play is a plugin's main: it returns the previous result, or an error.
func play(act func() error) int {
	var conf struct{ PrevResult json.RawMessage }
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(text, &conf)
	}
	if err == nil && os.Getenv("CNI_COMMAND") == "ADD" {
		if err = act(); err == nil {
			fmt.Println(string(conf.PrevResult))
		}
	}
	if err != nil {
		fmt.Printf(`{"cniVersion":"1.0.0","code":7,"msg":%q}`, err.Error())
		return 1
	}
	return 0
}
