package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	startsIn = 2 * time.Minute
	endsIn   = time.Minute
	// forgotten removes the Job of a client that is gone.
	forgotten = 10 * time.Second
	readGroup = 60947
)

// Once is a cniscope that runs on one node for a while, as a Job.
type Once struct {
	Namespace, Node, Image string
	Runtime, NRI           string // sockets
	ConfDir                string
	For                    time.Duration
}

// Image returns the image of cniscope's pods, or "".
func (c *Cluster) Image(ctx context.Context, namespace string) (image string) {
	_ = c.eachPod(ctx, cmp.Or(namespace, DefaultNamespace), Selector, func(p *corev1.Pod) {
		for _, container := range p.Spec.Containers {
			if container.Name == fleet.Container {
				image = container.Image
			}
		}
	})
	return image
}

// Start starts it and waits until its sidecar can be asked. Stop removes everything, also after an error.
func (c *Cluster) Start(ctx context.Context, o Once) (r Reader, stop func(out io.Writer) error, err error) {
	nothing := func(io.Writer) error { return nil }
	if NotFound(c.core.Get().Resource("nodes").Name(o.Node).Do(ctx).Error()) {
		return r, nothing, fmt.Errorf("node %s does not exist; kubectl get nodes lists the nodes", o.Node)
	}
	job := o.job()
	if err := c.batch.Post().Namespace(o.Namespace).Resource("jobs").Body(job).Do(ctx).Into(job); err != nil {
		return r, nothing, c.explain(ctx, err, right{verb: "create", resource: "jobs", role: Edit, namespace: o.Namespace})
	}
	pods := "batch.kubernetes.io/controller-uid=" + string(job.UID)
	stop = func(out io.Writer) error {
		fmt.Fprintf(out, "removing job %s and its pod from namespace %s\n", job.Name, o.Namespace)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endsIn)
		defer cancel()
		background, left := metav1.DeletePropagationBackground, ""
		return until(ctx, func() (bool, error) {
			err := c.batch.Delete().Namespace(o.Namespace).Resource("jobs").Name(job.Name).
				Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(ctx).Error()
			if err == nil || NotFound(err) {
				found := ""
				if err = c.eachPod(ctx, o.Namespace, pods, func(p *corev1.Pod) { found = p.Name }); err == nil {
					left = found
					return left == "", nil
				}
			}
			return false, nil
		}, func() error {
			if left != "" {
				return fmt.Errorf("job %s is removed, but not its pod, which node %s has not stopped: kubectl get pod -n %s %s",
					job.Name, o.Node, o.Namespace, left)
			}
			return fmt.Errorf("job %s is not removed; it removes itself after %s, or: kubectl delete job -n %s %s",
				job.Name, text.Round(o.For+startsIn+forgotten), o.Namespace, job.Name)
		})
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	waits := "no pod was created: kubectl describe job"
	err = until(ctx, func() (up bool, err error) {
		failed := c.eachPod(ctx, o.Namespace, pods, func(p *corev1.Pod) {
			r, _ = readerOf(p)
			waits, err = cmp.Or(r.Unready, "cniscope does not answer yet"), broken(p)
		})
		if failed != nil || err != nil || r.Pod == "" || r.Unready != "" {
			return false, err
		}
		answer, failed := c.Answer(ctx, r, []string{fleet.Node}, saidMost)
		var node control.Node
		if failed == nil && json.Unmarshal(answer, &node) == nil {
			waits = "its probe is " + node.Probe
		}
		return strings.HasPrefix(node.Probe, "attached"), nil
	}, func() error { return fmt.Errorf("cniscope has not started on node %s: %s", o.Node, waits) })
	if err == nil {
		lasts := fmt.Appendf(nil, `{"spec":{"activeDeadlineSeconds":%d}}`, (time.Since(began)+o.For+forgotten)/time.Second)
		_ = c.batch.Patch(types.MergePatchType).Namespace(o.Namespace).Resource("jobs").Name(job.Name).Body(lasts).
			Do(ctx).Error()
	}
	return r, stop, err
}

func until(ctx context.Context, done func() (bool, error), late func() error) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		switch {
		case clock.Wait(ctx, 300*time.Millisecond):
		case errors.Is(ctx.Err(), context.Canceled):
			return ctx.Err()
		default:
			return late()
		}
	}
}

func broken(p *corev1.Pod) error {
	for _, s := range p.Status.ContainerStatuses {
		switch w, t := s.State.Waiting, s.State.Terminated; {
		case t != nil:
			return fmt.Errorf("container %s has exited with %d: %s", s.Name, t.ExitCode, text.Clean(lastLine(t.Message), 1024))
		case w != nil && (strings.HasSuffix(w.Reason, "BackOff") || strings.HasPrefix(w.Reason, "Create")):
			return fmt.Errorf("container %s does not start: %s: %s", s.Name, text.Clean(w.Reason, text.Bound),
				text.Clean(w.Message, 1024))
		}
	}
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

const run = "/run/cniscope"

func (o Once) job() *batchv1.Job {
	options := fmt.Sprintf("[runtime]\nsocket = %q\n[nri]\nsocket = %q\n[cni]\nconf_dir = %q\n[state]\ndir = %q\n"+
		"[control]\nread_dir = \"/run/cniscope-read\"\nread_group = \"%d\"\n",
		o.Runtime, o.NRI, "/proc/1/root"+o.ConfDir, run, readGroup)
	made := corev1.HostPathDirectoryOrCreate
	root, ordinary, no, yes := int64(0), int64(readGroup), false, true
	read := corev1.VolumeMount{Name: "read", MountPath: "/run/cniscope-read"}
	container := func(name string, user *int64, add ...corev1.Capability) corev1.Container {
		return corev1.Container{
			Name: name, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Env: []corev1.EnvVar{
				{Name: "NODE_NAME", Value: o.Node},
				{Name: "CNISCOPE_READ_SOCKET", Value: read.MountPath + "/read.sock"},
			},
			VolumeMounts:             []corev1.VolumeMount{read},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: user, RunAsGroup: user, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities:    &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: add},
				SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
				SELinuxOptions:  &corev1.SELinuxOptions{Type: "spc_t"},
			},
		}
	}
	scope := container("cniscope", &root, "BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "NET_ADMIN")
	scope.VolumeMounts = append(scope.VolumeMounts, corev1.VolumeMount{Name: "options", MountPath: "/etc/cniscope"})
	var volumes []corev1.Volume
	below := corev1.MountPropagationHostToContainer
	for i, dir := range []string{run, filepath.Dir(o.NRI), filepath.Dir(o.Runtime)} {
		name := "node-" + strconv.Itoa(i)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: &made},
		}})
		scope.VolumeMounts = append(scope.VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: i > 0, MountPropagation: &below})
	}
	reader := container(fleet.Container, &ordinary)
	reader.Command = []string{fleet.Program, "serve"}
	lasts, tries, after, grace := int64((o.For+startsIn)/time.Second), int32(0), int32(forgotten/time.Second), int64(10)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "cniscope-debug-", Namespace: o.Namespace},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: &lasts, BackoffLimit: &tries, TTLSecondsAfterFinished: &after,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cniscope.dev/options": options}},
				Spec: corev1.PodSpec{
					NodeName: o.Node, HostPID: true, HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever,
					AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
					Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: []int64{readGroup}},
					Containers:      []corev1.Container{scope, reader},
					Volumes: append(volumes,
						corev1.Volume{Name: "read", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
							Medium: corev1.StorageMediumMemory,
						}}},
						corev1.Volume{Name: "options", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
							Items: []corev1.DownwardAPIVolumeFile{{
								Path:     "cniscope.toml",
								FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['cniscope.dev/options']"},
							}},
						}}}),
				},
			},
		},
	}
}
