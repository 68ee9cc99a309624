package assess

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/smart"
	"github.com/drivebay/drivebay/internal/smartctl"
)

// kind is the format of a document.
type kind uint8

const (
	smartctlDocument kind = iota
	ataBlocks
)

func (it item) verdict(th health.Thresholds) Verdict {
	switch {
	case it.err != nil:
		return Verdict{File: it.file, Err: it.err}
	case it.subject != nil:
		v := judge(it.file, it.subject.Input, th)
		if v.Serial == "" {
			v.Serial = it.subject.Serial
		}
		if v.Model == "" {
			v.Model = it.subject.Model
		}
		return v
	}
	in, err := decoders[it.kind](it.data)
	if err != nil {
		return Verdict{File: it.file, Err: err}
	}
	return judge(it.file, in, th)
}

var decoders = map[kind]func([]byte) (health.Input, error){
	smartctlDocument: func(b []byte) (health.Input, error) {
		doc, err := smartctl.Read(b)
		if err != nil {
			return health.Input{}, err
		}
		if a := doc.Evidence.ATA; a != nil {
			smart.NameUnknown(a.Attributes, doc.Evidence.Identity, doc.Evidence.Type)
		}
		return health.Input{Evidence: doc.Evidence, Type: doc.Evidence.Type, Transport: doc.Transport, Protocol: doc.Evidence.Protocol}, nil
	},
	ataBlocks: func(b []byte) (health.Input, error) {
		ev, err := smart.ReadBlocks(b)
		if err != nil {
			return health.Input{}, err
		}
		return health.Input{Evidence: ev, Type: ev.Type, Transport: drivebay.TransportSATA, Protocol: ev.Protocol}, nil
	},
}
