package hostsim

// entries are the files, links and folders of one drive, device or filesystem. They are removed
// together.
type entries struct {
	tree  *tree
	owner owner // hides them while it flickers
	nodes []*node
}

func (e *entries) add(path string, n *node) *node {
	n.owner = e.owner
	e.nodes = append(e.nodes, e.tree.put(path, n))
	return n
}

func (e *entries) file(path, text string)            { e.add(path, &node{text: text}) }
func (e *entries) live(path string, f func() string) { e.add(path, &node{read: f}) }
func (e *entries) link(path, target string)          { e.add(path, &node{link: relative(path, target)}) }

// files adds several files to a folder: name, text, name, text ...
func (e *entries) files(dir string, nameText ...string) {
	for i := 0; i+1 < len(nameText); i += 2 {
		e.file(dir+"/"+nameText[i], nameText[i+1])
	}
}

// folders adds folders that stay when they are empty.
func (e *entries) folders(paths ...string) {
	for _, path := range paths {
		n := e.tree.folder(path)
		n.keep = true
		e.nodes = append(e.nodes, n)
	}
}

// leave removes all entries.
func (e *entries) leave() {
	for _, n := range e.nodes {
		if n.kids != nil {
			n.keep = false
		}
		e.tree.drop(n)
	}
	e.nodes = nil
}
