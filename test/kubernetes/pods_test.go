//go:build linux

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
)

type pod struct {
	Metadata struct{ Namespace, Name, UID, DeletionTimestamp string }
	Spec     struct {
		Containers []struct{ Name string }
	}
	Status struct {
		Phase, PodIP      string
		Conditions        []struct{ Type, Status, Reason, Message string }
		ContainerStatuses []struct {
			State, LastState struct {
				Terminated *struct {
					ExitCode        int
					Reason, Message string
				}
			}
			Ready bool
		}
	}
}

func (p *pod) path() string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", p.Metadata.Namespace, p.Metadata.Name)
}

func (c *cluster) web(name string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "namespace": "default"},
		"spec": object{
			"nodeName": c.node, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
			"containers": []object{{
				"name": "web", "image": rig.PauseImage,
				"ports": []object{{"containerPort": 80, "hostPort": 18080}},
			}},
		},
	}
}

func (c *cluster) run(o object, done func(*pod) error) *pod {
	c.Helper()
	body := harness.Must(json.Marshal(o))(c)
	p := &pod{}
	answer := harness.Must(c.api.Do(c.ctx, "POST", "/api/v1/namespaces/"+o.Text("metadata", "namespace")+"/pods", body))(c)
	harness.Check(c, json.Unmarshal(answer.Body, p))
	path := p.path()
	harness.Eventually(c, func() error {
		*p = pod{}
		if err := c.api.Get(c.ctx, path, p); err != nil {
			return err
		}
		return done(p)
	})
	return p
}

func running(p *pod) error {
	for _, s := range p.Status.ContainerStatuses {
		if !s.Ready {
			return fmt.Errorf("pod %s is %s, not ready: %+v", p.Metadata.Name, p.Status.Phase, s)
		}
	}
	if p.Status.Phase != "Running" {
		return fmt.Errorf("pod %s is %s: %+v", p.Metadata.Name, p.Status.Phase, p.Status)
	}
	return nil
}

func ended(p *pod) error {
	if _, ok := ending(p); !ok {
		return fmt.Errorf("no container of pod %s has ended: %+v", p.Metadata.Name, p.Status)
	}
	return nil
}

func ending(p *pod) (message string, ok bool) {
	for _, s := range p.Status.ContainerStatuses {
		if t := s.LastState.Terminated; t != nil {
			return t.Message, true
		}
		if t := s.State.Terminated; t != nil {
			return t.Message, true
		}
	}
	return "", false
}

func (c *cluster) remove(p *pod) {
	c.Helper()
	_, err := c.api.Do(c.ctx, "DELETE", p.path(), nil)
	harness.Check(c, err)
	harness.Eventually(c, func() error {
		err := c.api.Get(c.ctx, p.path(), &pod{})
		if err == nil {
			return fmt.Errorf("pod %s is still there", p.Metadata.Name)
		}
		if kube.NotFound(err) {
			return nil
		}
		return err
	})
}

func (c *cluster) log(p *pod) string {
	c.Helper()
	files, err := filepath.Glob(filepath.Join(c.podLogs, strings.Join([]string{p.Metadata.Namespace, p.Metadata.Name, p.Metadata.UID}, "_"), "*", "*.log"))
	harness.Check(c, err)
	slices.Sort(files)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the pod is being removed
		}
		harness.Check(c, err)
		all.Write(text)
	}
	return all.String()
}

func (c *cluster) logged(p *pod, text string) {
	c.Helper()
	harness.Eventually(c, func() error {
		if all := c.log(p); !strings.Contains(all, text) {
			return fmt.Errorf("pod %s has not logged %q:\n%s", p.Metadata.Name, text, all)
		}
		return nil
	})
}
