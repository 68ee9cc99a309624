package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const passphraseOfTest = "correct horse battery staple"

// vaultOf is a daemon on a simulated machine whose drives are all claimed.
func vaultOf(t *testing.T) (r *running, try func(want string, args ...string) string) {
	t.Helper()
	rack := filepath.Join(t.TempDir(), "rack.yaml")
	write(t, rack, "machine: rack\nclaim: all\ndrives:\n  - {count: 2, kind: nvme, size: 20GB}\n")
	endpoint := "unix://" + shortDir(t) + "/csi"
	r = serve(t, "--sim", rack, "--csi-endpoint", endpoint, "--log-level", "debug")
	r.env["CSI_ENDPOINT"] = endpoint
	try = func(want string, args ...string) string {
		t.Helper()
		out, errs, code := call(t, r.env, args...)
		if (code == 0) != (want == "") || !strings.Contains(errs, want) {
			t.Errorf("%.80q: exit status %d, want %q: %s", args, code, want, errs)
		}
		if strings.Contains(out+errs, "horse") {
			t.Errorf("%.80q tells the passphrase: %s%s", args, out, errs)
		}
		return strings.TrimSpace(out)
	}
	eventually(t, patience, func() bool {
		_, _, code := call(t, r.env, "status")
		return code == 0
	}, r.err.String)
	return r, try
}

// TestPassphraseFromTheCommandLine: the life of an encrypted volume as people have
// it. What they know is in no output, no log, and no file of ours.
func TestPassphraseFromTheCommandLine(t *testing.T) {
	r, try := vaultOf(t)
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, passphraseOfTest)
	id := try("", "volume", "create", "safe", "--size", "1GiB", "--passphrase-file", file)
	try("exists", "volume", "create", "safe", "--size", "1GiB")
	if out := try("", "volume", "show", "safe"); !strings.Contains(out, "drivebay.io/encryption=luks2") {
		t.Errorf("it is not said to be encrypted:\n%s", out)
	}
	const path, capability = "/var/lib/kubelet/stage", `"volume_capability":{"mount":{},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`
	stage := `{"volume_id":"` + id + `","staging_target_path":"` + path + `",` + capability
	try("InvalidArgument", "csi", "NodeStageVolume", stage+`}`)
	try("Unauthenticated", "csi", "NodeStageVolume", stage+`,"secrets":{"passphrase":"`+passphraseOfTest+`!"}}`)
	try("", "csi", "NodeStageVolume", stage+`,"secrets":{"passphrase":"`+passphraseOfTest+`"}}`)

	if out := try("", "volume", "expand", "safe", "2GiB"); !strings.Contains(out, "or now with --passphrase-file") {
		t.Errorf("grown without the passphrase: %s", out)
	}
	write(t, file, passphraseOfTest+"\n") // a byte more is another one
	try("not the right secret", "volume", "expand", "safe", "2GiB", "--passphrase-file", file)
	write(t, file, passphraseOfTest)
	if out := try("", "volume", "expand", "safe", "2GiB", "--passphrase-file", file); !strings.HasSuffix(out, "has 2 GiB") {
		t.Errorf("grown: %s", out)
	}
	if out := try("", "csi", "NodeGetVolumeStats", `{"volume_id":"`+id+`","volume_path":"`+path+`"}`); !strings.Contains(out, `"total":`) {
		t.Errorf("stats: %s", out)
	}
	try("", "csi", "NodeUnstageVolume", `{"volume_id":"`+id+`","staging_target_path":"`+path+`"}`)

	if kept := filesWith(t, r.dir, "LUKS\xba\xbe"); len(kept) != 1 {
		t.Errorf("copies of headers: %v", kept)
	}
	try("", "volume", "delete", "safe", "--yes")
	if kept := filesWith(t, r.dir, "LUKS\xba\xbe"); len(kept) != 0 {
		t.Errorf("deleted: %v", kept)
	}
	try("", "events")
	if told := filesWith(t, r.dir, "horse"); len(told) > 0 || strings.Contains(r.err.String()+r.out.String(), "horse") || !strings.Contains(r.err.String(), "NodeStageVolume") {
		t.Errorf("the passphrase is in %v, or in the log:\n%s", told, r.err.String())
	}
}

// filesWith are the files below a folder in which a text is.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	looked := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if looked++; strings.Contains(string(b), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || looked == 0 {
		t.Errorf("%d files in %s: %v", looked, dir, err)
	}
	return found
}

// TestPassphraseFiles: what is in the file is taken as it is, and nothing else.
func TestPassphraseFiles(t *testing.T) {
	r, try := vaultOf(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "bytes": "\xff\xfe", "long": strings.Repeat("x", 4097), "most": strings.Repeat("x", 4096)} {
		write(t, filepath.Join(dir, name), text)
	}
	create := func(args ...string) []string {
		return append([]string{"volume", "create", "v", "--passphrase-file"}, args...)
	}
	try("no such file", create(dir+"/none")...)
	try("the passphrase is empty", create(dir+"/empty")...)
	try("not valid text", create(dir+"/bytes")...)
	try("longer than 4096 bytes", create(dir+"/long")...)
	try("--passphrase-file is required", "volume", "create", "v", "--encryption", "luks2")
	try("unix socket only", append(create(dir+"/most"), "--api", "http://127.0.0.1:1")...)
	if out := try("", "volumes", "-o", "json"); strings.Contains(out, `"name": "v"`) {
		t.Error("a volume was made")
	}
	try("", create(dir+"/most")...)

	typed := func(in string, args ...string) string {
		var out, errs safeBuffer
		a := testApp(r.env, &out, &errs)
		a.in = strings.NewReader(in)
		if code := a.run(t.Context(), args); code != exitOK {
			t.Fatalf("%v from standard input: %s", args, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	id := typed(passphraseOfTest, "volume", "create", "w", "--encryption", "luks2", "--passphrase-file", "-")
	stage := `{"volume_id":"` + id + `","staging_target_path":"/var/lib/kubelet/w","volume_capability":{"mount":{},"access_mode":{"mode":"SINGLE_NODE_WRITER"}},"secrets":{"passphrase":"` + passphraseOfTest + `"}}`
	typed(stage, "csi", "NodeStageVolume", "-")
}
