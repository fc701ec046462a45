package access

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/test/harness"
)

const operator = "cniscope:cniscope-operator"

func TestWhoAsks(t *testing.T) {
	ours := []string{fleet.Audience}
	for name, c := range map[string]struct {
		id   Identity
		want Viewer
		code int
		says string
	}{
		"a developer":                         {Identity{true, "system:serviceaccount:shop:default", ours, ""}, Viewer{Namespace: "shop"}, 0, ""},
		"the operator":                        {Identity{true, "system:serviceaccount:cniscope:cniscope-operator", ours, ""}, Viewer{Operator: true, Namespace: "cniscope"}, 0, ""},
		"the operator's name elsewhere":       {Identity{true, "system:serviceaccount:shop:cniscope-operator", ours, ""}, Viewer{Namespace: "shop"}, 0, ""},
		"another account beside the operator": {Identity{true, "system:serviceaccount:cniscope:default", ours, ""}, Viewer{Namespace: "cniscope"}, 0, ""},
		"one of several audiences":            {Identity{true, "system:serviceaccount:shop:default", []string{"vault", fleet.Audience}, ""}, Viewer{Namespace: "shop"}, 0, ""},
		"refused":                             {Identity{false, "", nil, "token has expired"}, Viewer{}, fleet.NoToken, "token has expired"},
		"refused without a word":              {Identity{false, "system:serviceaccount:shop:default", ours, ""}, Viewer{}, fleet.NoToken, "does not know it"},
		"for the API server":                  {Identity{true, "system:serviceaccount:shop:default", []string{"https://kubernetes.default.svc"}, ""}, Viewer{}, fleet.NoToken, `audience "cniscope"`},
		"of a server without audiences":       {Identity{true, "system:serviceaccount:shop:default", nil, ""}, Viewer{}, fleet.NoToken, `audience "cniscope"`},
		"a person":                            {Identity{true, "alice", ours, ""}, Viewer{}, fleet.NoToken, "no ServiceAccount"},
		"a person called like an account":     {Identity{true, "alice:system:serviceaccount:shop:default", ours, ""}, Viewer{}, fleet.NoToken, "no ServiceAccount"},
		"an account without a name":           {Identity{true, "system:serviceaccount:shop", ours, ""}, Viewer{}, fleet.NoToken, "no ServiceAccount"},
		"an account of no namespace":          {Identity{true, "system:serviceaccount::default", ours, ""}, Viewer{}, fleet.NoToken, "no ServiceAccount"},
		"an account with too many names":      {Identity{true, "system:serviceaccount:cniscope:cniscope-operator:x", ours, ""}, Viewer{}, fleet.NoToken, "no ServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(c.id, operator)
			harness.Equal(t, got, c.want)
			checkRefusal(t, err, c.code, c.says)
		})
	}
}

func TestWithoutAnOperatorNobodyIsOne(t *testing.T) {
	for _, user := range []string{"system:serviceaccount:cniscope:cniscope-operator", "system:serviceaccount::"} {
		if v, _ := Of(Identity{true, user, []string{fleet.Audience}, ""}, ""); v.Operator {
			t.Errorf("%s is an operator", user)
		}
	}
}

func TestARefusalNamesTheRightThatIsMissing(t *testing.T) {
	checkRefusal(t, Missing(), fleet.NoToken, "serviceaccounts/token")
	shop := Viewer{Namespace: "shop"}
	checkRefusal(t, shop.Node(fleet.Doctor), fleet.NotAllowed, "operator")
	_, err := shop.In("bank")
	checkRefusal(t, err, fleet.NotAllowed, "serviceaccounts/token in bank")
	checkRefusal(t, Viewer{Operator: true}.Node(fleet.Doctor), 0, "")
}

func checkRefusal(t *testing.T, err error, code int, says string) {
	t.Helper()
	if code == 0 {
		if err != nil {
			t.Errorf("it is refused: %v", err)
		}
		return
	}
	var no *Refusal
	if !errors.As(err, &no) || no.ExitCode() != code || !strings.Contains(no.Error(), says) {
		t.Errorf("the refusal is %#v, want code %d and %q in it", err, code, says)
	}
}

func TestAQuestionStaysInItsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		viewer      Viewer
		asked, want string
		fails       bool
	}{
		"operator, all":       {Viewer{Operator: true, Namespace: "cniscope"}, "", "", false},
		"operator, another":   {Viewer{Operator: true, Namespace: "cniscope"}, "shop", "shop", false},
		"developer, all":      {Viewer{Namespace: "shop"}, "", "shop", false},
		"developer, own":      {Viewer{Namespace: "shop"}, "shop", "shop", false},
		"developer, another":  {Viewer{Namespace: "shop"}, "bank", "", true},
		"developer, a prefix": {Viewer{Namespace: "shop"}, "shop-2", "", true},
	} {
		if got, err := c.viewer.In(c.asked); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestCallsOfOthersAreLeftOut(t *testing.T) {
	all := []control.Call{{Namespace: "shop", Pod: "web"}, {Namespace: "bank", Pod: "vault"}, {Pod: "nobody-knows"}}
	if got := (Viewer{Namespace: "shop"}).Calls(all); len(got) != 1 || got[0].Pod != "web" {
		t.Errorf("a developer of shop sees %+v", got)
	}
	if got := (Viewer{}).Calls(all); len(got) != 0 {
		t.Errorf("nobody sees %+v", got)
	}
	harness.DeepEqual(t, (Viewer{Operator: true}).Calls(all), all, "an operator sees")
}

// remembered has an operation of each kind; "vault" is another tenant's pod.
func remembered() control.Operations {
	return control.Operations{Next: 9, Operations: []control.Line{
		{Seq: 1, Namespace: "shop", Pod: "web", Result: control.Ordinary, Duration: time.Second},
		{
			Seq: 2, Namespace: "shop", Pod: "web", Result: control.Slow, Cause: "file_lock", Foreign: true, Certain: true,
			Verdict: "4.9s of 5.1s waiting for lock /run/bank.lock, held by sync --key of bank/vault", Remedy: "kill sync of bank/vault", Error: "bank/vault has it",
		},
		{
			Seq: 3, Namespace: "shop", Pod: "web", Result: control.Slow, Cause: "sleep", Certain: true,
			Verdict: "2.1s of 2.2s in policyctl > sleep", Remedy: "take the sleep out of policyctl",
		},
		{Seq: 4, Namespace: "bank", Pod: "vault", Result: control.Failed, Cause: "plugin_error", Verdict: "no address left"},
		{Seq: 5, Pod: "", Sandbox: "abc", Result: control.Failed, Error: "vault"},
		{Seq: 6, Namespace: "shop", Pod: "web", Result: control.Failed, Foreign: true, Error: "vault is in the way"},
		{
			Seq: 7, Namespace: "shop", Pod: "web", Result: control.Slow, Cause: "file_lock", Foreign: true, Certain: true,
			Verdict: "4.9s of 5.1s waiting for lock /run/bank.lock, held by sync of bank/vault", Own: "4.9s of 5.1s waiting for a lock that another pod held",
		},
	}}
}

func TestWhatTellsOfOthersIsWithheld(t *testing.T) {
	got := Viewer{Namespace: "shop"}.Operations(remembered())
	if got.Namespace != "shop" || got.Next != 9 {
		t.Errorf("the document is %+v", got)
	}
	var seen []uint64
	for _, line := range got.Operations.Operations {
		seen = append(seen, line.Seq)
		for _, text := range []string{line.Namespace, line.Pod, line.Verdict, line.Own, line.Remedy, line.Error} {
			for _, secret := range []string{"vault", "bank", "--key"} {
				if strings.Contains(text, secret) {
					t.Errorf("operation %d tells of %s: %q", line.Seq, secret, text)
				}
			}
		}
	}
	harness.DeepEqual(t, seen, []uint64{1, 2, 3, 6, 7}, "a developer of shop sees the operations")
	withheld, own := got.Operations.Operations[1], got.Operations.Operations[2]
	if withheld.Cause != "file_lock" || !strings.Contains(withheld.Verdict, "another pod") {
		t.Errorf("of the foreign one there is %+v", withheld)
	}
	if got := got.Operations.Operations[4].Verdict; got != remembered().Operations[6].Own {
		t.Errorf("what is for the pod's owner of a foreign verdict is %q", got)
	}
	harness.Equal(t, own, remembered().Operations[2], "the pod's own verdict")
}

func TestAnOperatorSeesAll(t *testing.T) {
	if got := (Viewer{Operator: true, Namespace: "cniscope"}).Operations(remembered()); got.Namespace != "" || !reflect.DeepEqual(got.Operations, remembered()) {
		t.Errorf("an operator sees %+v", got)
	}
}
