// Command record makes a recording of a machine's drives that drivebay can read on
// another machine: sysfs, the udev database, the mount table, and every page that
// the drives answer. Serials, worldwide names, UUIDs and the host name are
// replaced by others of the same form; no content of any drive is recorded.
//
//	go run ./hack/record -o /tmp/recording
//	drivebay drives --root /tmp/recording
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/drivebay/drivebay/internal/host"
)

func main() {
	root := flag.String("root", "/", "root of the machine to record")
	out := flag.String("o", "", "folder to write; it must not exist yet")
	scrub := flag.Bool("scrub", true, "replace serials, worldwide names, UUIDs and the host name")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: record -o DIR [-root DIR] [-scrub=false]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *out, *scrub); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out string, scrub bool) error {
	m, err := host.Real(root)
	if err != nil {
		return err
	}
	r, err := collect(ctx, m, os.Stderr)
	if err != nil {
		return err
	}
	if scrub {
		r = r.scrubbed()
	}
	if err := r.write(out); err != nil {
		return err
	}
	fmt.Printf("%d files, %d links, %d drives in %s\n", len(r.files), len(r.links), r.drives, out)
	return nil
}
