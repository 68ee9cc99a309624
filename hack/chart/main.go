// Command chart renders the Helm chart: with its default values as a manifest for kubectl, or its objects with the values
// of a file.
//
//	go -C hack/chart run . [VALUES.yaml]
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	text, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

func run(args []string) (string, error) {
	switch len(args) {
	case 0:
		return manifest()
	case 1:
		values, err := os.ReadFile(args[0])
		if err != nil {
			return "", err
		}
		r, err := render(string(values))
		return r.objects, err
	}
	return "", errors.New("usage: chart [VALUES.yaml]")
}
