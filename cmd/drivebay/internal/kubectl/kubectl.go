// Package kubectl says which commands of a node work on a cluster, and what they are called there.
package kubectl

import (
	"regexp"
	"slices"
	"strings"
)

// Command is what a person types before the name of a command.
const Command = "kubectl drivebay"

// Served are the commands that work on a cluster, with those of their subcommands that do; nil: it has none.
var Served = map[string][]string{
	"status": nil, "drives": nil, "volumes": nil, "tree": nil, "explain": nil, "replace": nil, "locate": nil, "events": nil, "heal": nil, "ui": nil,
	"claim": nil, "unclaim": nil, "cordon": nil, "uncordon": nil, "release": nil, "approve": nil, "cancel": nil, "accept": nil,
	"drive": {"show"}, "volume": {"show", "move-before-use", "release", "forget", "adopt"}, "version": nil, "help": nil,
}

var nodeCommand = func() *regexp.Regexp {
	var all []string
	for name, subs := range Served {
		if subs == nil {
			all = append(all, name)
		}
		for _, sub := range subs {
			all = append(all, name+" "+sub)
		}
	}
	slices.Sort(all)
	return regexp.MustCompile("`drivebay (" + strings.Join(all, "|") + ")\\b")
}()

// onNode finds a command that works on the node only and names a drive as its object is named. The ids of drives begin with the
// kind of name that they are made from (drivemgr/internal/identity).
var onNode = regexp.MustCompile("`drivebay ([^`]*?)\\b((?:naa|eui|nguid|uuid|t10|sn|path)-[a-z0-9-]+)\\.([a-z0-9][a-z0-9.-]*)([^`]*)`")

// Words returns a text in which the commands of a node, in backquotes, are those of the cluster. A command that a cluster does
// not have is to be run on the node, with the name that the drive has there.
func Words(text []byte) []byte {
	text = nodeCommand.ReplaceAll(text, []byte("`"+Command+" $1"))
	return onNode.ReplaceAll(text, []byte("`drivebay $1$2$4` on node $3"))
}
