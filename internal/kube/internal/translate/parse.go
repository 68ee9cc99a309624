package translate

// Parse returns a value of an enum by its name; unknown names are the zero value, which promises nothing.
func Parse[E any, P interface {
	*E
	UnmarshalText([]byte) error
}](name string) E {
	return parse[E, P](name)
}
