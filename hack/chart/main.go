// Command chart renders the Helm chart with its default values, as a manifest for kubectl.
package main

import (
	"fmt"
	"os"
)

func main() {
	text, err := manifest()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}
