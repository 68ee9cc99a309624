package rpc

// Lacking returns what volumes need and the machine lacks, and what to do about it; nil
// for an engine without that method.
func Lacking(engine any) []string {
	if l, ok := engine.(interface{ Lacking() []string }); ok {
		return l.Lacking()
	}
	return nil
}
