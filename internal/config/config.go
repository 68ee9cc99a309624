// Package config reads what an administrator wants: a YAML file, DRIVEBAY_*
// variables and flags, each winning over the one before. It refuses what it does
// not understand, says where, and says everything that is wrong at once.
package config

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// Config is the whole configuration. The tags are the only list of its keys: the
// reader, the variables, the flags, the printed example and the checks come from
// them. "live" keys take effect on SIGHUP, the others with the next start.
type Config struct {
	StateDir       string             `yaml:"stateDir" flag:"state-dir" doc:"Where records and events are kept. Empty: /var/lib/drivebay for root, else $XDG_STATE_HOME/drivebay."`
	API            string             `yaml:"api" flag:"api" doc:"The unix socket of the API, as unix:///path. Empty: /run/drivebay/drivebay.sock for root, else below $XDG_RUNTIME_DIR or the state directory."`
	Listen         string             `yaml:"listen" flag:"listen" doc:"Also serve HTTP, read-only, at this TCP address, such as 127.0.0.1:9100. Empty: do not."`
	CSIEndpoint    string             `yaml:"csiEndpoint" flag:"csi-endpoint" doc:"Serve the Container Storage Interface on this socket, as unix:///path (also $CSI_ENDPOINT). Empty: do not."`
	AddonsEndpoint string             `yaml:"addonsEndpoint" flag:"addons-endpoint" doc:"Serve CSI-Addons (healing, reclaiming space, changing keys) on this socket, as unix:///path. Empty: do not."`
	NodeID         string             `yaml:"nodeID" flag:"node-id" doc:"What a container orchestrator calls this machine, 128 bytes at most. Empty: its host name."`
	VolumeRoots    []string           `yaml:"volumeRoots" flag:"volume-roots" doc:"Volumes are mounted below these folders only, absolute and without links: /var/lib/kubelet for Kubernetes, Nomad's client/csi folder, or one of your own."`
	Root           string             `yaml:"root" flag:"root" doc:"The folder that holds sys/, proc/ and run/ of the machine."`
	Loop           bool               `yaml:"loop" flag:"loop" live:"yes" doc:"Show loop devices as drives."`
	Claim          drivebay.Selectors `yaml:"claim" flag:"claim" live:"yes" doc:"Drives that may be used for volumes, such as type=nvme,size>=1TB; serial=S64H*. Keys are id, serial, vendor, model, type, transport, bay, enclosure and size; \"all\" means all. Empty: none but those that were claimed by hand. A drive with anything on it is never taken."`
	Sim            string             `yaml:"sim" flag:"sim" doc:"Serve a simulated machine that this file describes instead of the real one; poll.evidence is 10s then, unless set."`

	Log         Log               `yaml:"log" doc:"What is logged, on standard error."`
	Volumes     Volumes           `yaml:"volumes" doc:"When something about a volume counts as a fault; docs/volume-conditions.md is the table."`
	Healing     Healing           `yaml:"healing" doc:"What is put right without being asked; docs/repairs.md is the table."`
	Poll        Poll              `yaml:"poll" doc:"How often things are looked at, and how long. Kernel events wake us at once in any case."`
	SelfTests   SelfTests         `yaml:"selfTests" doc:"Self-tests that the drives run in the background."`
	Replacement Replacement       `yaml:"replacement" doc:"How drives are led out of the machine. docs/drive-replacement.md is the runbook."`
	Thresholds  health.Thresholds `yaml:"thresholds" live:"yes" doc:"Where a count turns into a verdict. docs/health-rules.md explains each."`
}

// Log is how we speak.
type Log struct {
	Level  string `yaml:"level" flag:"log-level" live:"yes" oneof:"debug info warn error" doc:"debug, info, warn or error."`
	Format string `yaml:"format" flag:"log-format" oneof:"text json" doc:"text or json."`
}

// Volumes is how the condition of volumes is judged.
type Volumes struct {
	Filesystems []string `yaml:"filesystems" flag:"volumes-filesystems" doc:"The filesystems that StorageClasses ask for: ext4, xfs, btrfs. The plugin is not ready while the mkfs program of one is missing, and makes volumes with no other."`
	FullPercent int      `yaml:"fullPercent" flag:"volumes-full-percent" min:"0" max:"100" doc:"A filesystem whose space or inodes are used to this percentage, of what those who are not root can use, is OutOfCapacity. 0: how full a volume is is no fault."`
}

// Healing is what we do to volumes by ourselves.
type Healing struct {
	Policy string `yaml:"policy" flag:"healing-policy" oneof:"off safe" doc:"off: volumes are healed when somebody asks (drivebay heal, NodeHealer). safe: also by itself, by those repairs that write nothing to what users have and unmount nothing that anybody can still use."`
}

// Poll is how often we look, and how long we wait and remember.
type Poll struct {
	Tick        time.Duration `yaml:"tick" live:"yes" min:"100ms" max:"1m" doc:"The kernel's own counters and states; touches no drive."`
	Evidence    time.Duration `yaml:"evidence" live:"yes" min:"10s" max:"1d" doc:"Every drive that is awake is asked for its health pages."`
	Rescan      time.Duration `yaml:"rescan" live:"yes" min:"10s" max:"1d" doc:"All drives are listed again, in case an event was lost."`
	Timeout     time.Duration `yaml:"timeout" live:"yes" min:"1s" max:"10m" doc:"How long a drive may take to answer."`
	Parallel    int           `yaml:"parallel" min:"1" max:"1000" doc:"No more drives than this are asked at once."`
	ForgetAfter time.Duration `yaml:"forgetAfter" live:"yes" min:"1h" max:"3650d" doc:"How long a drive that left is remembered."`
}

// SelfTests is the schedule of self-tests.
type SelfTests struct {
	Enabled       bool          `yaml:"enabled" live:"yes" doc:"Start self-tests on this schedule."`
	Short         time.Duration `yaml:"short" live:"yes" min:"0" max:"365d" doc:"Time between short tests: 7d, weekly, never ..."`
	Long          time.Duration `yaml:"long" live:"yes" min:"0" max:"365d" doc:"Time between long tests: 30d, monthly, never ..."`
	Window        Window        `yaml:"window" live:"yes" doc:"Tests start only between these local times. Empty: at any time."`
	MaxConcurrent int           `yaml:"maxConcurrent" live:"yes" min:"1" max:"1000" doc:"No more drives than this are under test at once."`
}

// Replacement is when a drive has to leave without anybody saying so, and how it is
// emptied.
type Replacement struct {
	Trigger  string `yaml:"trigger" live:"yes" oneof:"off bad suspect" doc:"A claimed drive whose health turned so is released by itself: off, bad or suspect. One leaves at a time, and none while several of one enclosure or controller turned at once. An operator approves that it is taken out."`
	Throttle int    `yaml:"throttle" min:"1" max:"100" doc:"Volume groups that move to another drive are copied for this share of the time, in percent; 100 is as fast as the drives can."`
	CopyRate uint64 `yaml:"copyRate" doc:"How many bytes of a volume are copied to another drive in a second. 0: as many as can be."`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Root: "/", VolumeRoots: []string{"/var/lib/kubelet"},
		Log:     Log{Level: "info", Format: "text"},
		Volumes: Volumes{Filesystems: slices.Clone(drivebay.FSTypes)},
		Healing: Healing{Policy: "off"},
		Poll: Poll{
			Tick: 2 * time.Second, Evidence: 10 * time.Minute, Rescan: 5 * time.Minute,
			Timeout: 30 * time.Second, Parallel: 16, ForgetAfter: 30 * day,
		},
		SelfTests: SelfTests{
			Short: 7 * day, Long: 30 * day, MaxConcurrent: 1,
			Window: Window{From: time.Hour, To: 5 * time.Hour},
		},
		Replacement: Replacement{Trigger: "bad", Throttle: 100},
		Thresholds:  health.Default(),
	}
}

// Place is what the default paths depend on.
type Place struct {
	Root   bool // we run as root
	Getenv func(string) string
}

// Here is where this process runs.
func Here() Place { return Place{Root: os.Geteuid() == 0, Getenv: os.Getenv} }

// Resolve fills in the paths that were left to us.
func (c Config) Resolve(p Place) Config {
	if c.StateDir == "" {
		c.StateDir = p.StateDir()
	}
	if c.API == "" {
		c.API = "unix://" + p.socket(c.StateDir)
	}
	return c
}

// StateDir is the default state directory.
func (p Place) StateDir() string {
	if p.Root {
		return "/var/lib/drivebay"
	}
	if dir := p.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "drivebay")
	}
	return filepath.Join(p.Getenv("HOME"), ".local", "state", "drivebay")
}

// API is the default address of the daemon.
func (p Place) API() string { return "unix://" + p.socket(p.StateDir()) }

func (p Place) socket(stateDir string) string {
	if p.Root {
		return "/run/drivebay/drivebay.sock"
	}
	if dir := p.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "drivebay", "drivebay.sock")
	}
	return filepath.Join(stateDir, "drivebay.sock")
}
