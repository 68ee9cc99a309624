// Package mountoptions has what the options of a mount may be, and what the engine adds to them.
package mountoptions
