package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestThirdParty: every module that is linked has an allowed license, and THIRD_PARTY is up to date.
func TestThirdParty(t *testing.T) {
	want, err := thirdParty(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "THIRD_PARTY"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("THIRD_PARTY is not what the linked modules give: make generate")
	}
	for _, part := range []string{"go.etcd.io/bbolt", "google.golang.org/grpc", "Copyright 2009 The Go Authors", "Prometheus instrumentation library",
		"Copyright (c) 2013 The Go Authors"} { // of gddo, a copy of which is below client_golang {
		if !strings.Contains(string(want), part) {
			t.Errorf("%q is not in the page", part)
		}
	}
	if strings.Contains(string(want), "ginkgo") {
		t.Error("a module of the tests is listed")
	}
}

func TestOwnLicense(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := identify(string(text)); err != nil || !slices.Equal(found, []string{"Apache-2.0"}) || !strings.Contains(string(text), "Copyright the drivebay authors") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestIdentify(t *testing.T) {
	const bsd = "Redistributions in binary form must reproduce the above\ncopyright notice, this list. "
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004": "Apache-2.0",
		bsd:                                "BSD-2-Clause",
		bsd + "Neither the name of Google": "BSD-3-Clause",
		"Permission is hereby granted, free of charge, to any person obtaining a copy\n... Apache License Version 2.0, January 2004": "Apache-2.0,MIT",
	} {
		if found, err := identify(text); err != nil || strings.Join(found, ",") != want {
			t.Errorf("%q: %v, %v", text, found, err)
		}
	}
	for _, text := range []string{
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", "                    GNU AFFERO GENERAL PUBLIC\nLICENSE", "GNU Lesser General Public License",
		"\"Commons Clause\" License Condition v1.0\nApache License\nVersion 2.0, January 2004", "Business Source License 1.1", "All rights reserved.", "",
	} {
		if found, err := identify(text); err == nil {
			t.Errorf("%q is taken for %v", text, found)
		}
	}
}

// TestNoLicense: a module without a license file may not be linked.
func TestNoLicense(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("free"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := module{name: "example.org/m", dir: dir}
	if err := m.read(); err == nil || !strings.Contains(err.Error(), "example.org/m has no license") {
		t.Errorf("%v", err)
	}
}
