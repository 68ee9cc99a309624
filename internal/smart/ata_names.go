package smart

import (
	"strings"

	"github.com/drivebay/drivebay"
)

// meaning holds the customary name of an attribute id and the format of its raw bits.
type meaning struct {
	name   string
	format format
	only   drivebay.Type // the type of drive with this meaning; 0: any
}

const (
	hdd = drivebay.TypeHDD
	ssd = drivebay.TypeSSD
)

// The unknown names are for ids without a common meaning.
const (
	unknownName    = "Unknown_Attribute"
	unknownHDDName = "Unknown_HDD_Attribute"
	unknownSSDName = "Unknown_SSD_Attribute"
	// vendorName is for a value that is known not to be the usual one of its id.
	vendorName = "Vendor_Specific"
)

// hourly and celsius hold the names of attributes that fill common fields.
var (
	hourly = map[string]bool{"Power_On_Hours": true, "Power_On_Hours_and_Msec": true,
		"Power_On_Minutes": true, "Power_On_Seconds": true, "Power_On_Half_Minutes": true}
	celsius = map[string]bool{"Temperature_Celsius": true, "Airflow_Temperature_Cel": true, "Temperature_Case": true,
		"Temperature_Internal": true, "Drive_Temperature": true, "Case_Temperature": true}
)

// name sets the names, counts and texts of attributes.
func name(attrs []drivebay.Attribute, id drivebay.Identity, medium drivebay.Type) {
	f := familyOf(id, medium, attrs)
	for i := range attrs {
		a := &attrs[i]
		m, known := f[a.ID]
		if !known {
			m = usual(a.ID, medium)
		}
		if m.format == nil {
			m.format = plain
		}
		a.Name = m.name
		a.Count, a.Text = m.format(a.Raw)
	}
}

// NameUnknown names the attributes of a document for which it has no name, or the customary one, and the
// family of the drive another: the tool that wrote it does not know the family. The counts follow the
// format of the family.
func NameUnknown(attrs []drivebay.Attribute, id drivebay.Identity, medium drivebay.Type) {
	f := familyOf(id, medium, attrs)
	for i := range attrs {
		a := &attrs[i]
		m, known := f[a.ID]
		if generic := a.Name == "" || strings.HasPrefix(a.Name, "Unknown") || a.Name == customary[a.ID].name; !known || !generic {
			continue
		}
		a.Name = m.name
		if m.format != nil {
			a.Count, a.Text = m.format(a.Raw)
		}
	}
}

// Rename gives the attributes of a drive the names and counts that they have when the drive itself is
// read.
func Rename(attrs []drivebay.Attribute, id drivebay.Identity, medium drivebay.Type) {
	name(attrs, id, medium)
}

// usual returns the meaning of an id that the family of the drive does not define.
func usual(id uint8, medium drivebay.Type) meaning {
	m, known := customary[id]
	switch {
	case !known:
		return meaning{name: unknownName}
	case m.only == 0 || medium == 0 || medium == m.only:
		return m
	case medium == ssd:
		return meaning{name: unknownSSDName}
	}
	return meaning{name: unknownHDDName}
}

// customary holds the meanings that vendors share by habit. No standard defines them: ATA-3 left
// the ids to the vendor, ATA8 made the table obsolete. The names are those of common SMART tools.
// 241 and 242 are missing for flash, because vendors use too many different units.
var customary = map[uint8]meaning{
	1:   {name: "Raw_Read_Error_Rate"},
	2:   {name: "Throughput_Performance"},
	3:   {name: "Spin_Up_Time", format: average},
	4:   {name: "Start_Stop_Count"},
	5:   {name: "Reallocated_Sector_Ct", format: word},
	6:   {name: "Read_Channel_Margin", only: hdd},
	7:   {name: "Seek_Error_Rate", only: hdd},
	8:   {name: "Seek_Time_Performance", only: hdd},
	9:   {name: "Power_On_Hours", format: hours},
	10:  {name: "Spin_Retry_Count", only: hdd},
	11:  {name: "Calibration_Retry_Count", only: hdd},
	12:  {name: "Power_Cycle_Count"},
	13:  {name: "Read_Soft_Error_Rate"},
	22:  {name: "Helium_Level", only: hdd},
	23:  {name: "Helium_Condition_Lower", only: hdd},
	24:  {name: "Helium_Condition_Upper", only: hdd},
	175: {name: "Program_Fail_Count_Chip", only: ssd},
	176: {name: "Erase_Fail_Count_Chip", only: ssd},
	177: {name: "Wear_Leveling_Count", only: ssd},
	178: {name: "Used_Rsvd_Blk_Cnt_Chip", only: ssd},
	179: {name: "Used_Rsvd_Blk_Cnt_Tot", only: ssd},
	180: {name: "Unused_Rsvd_Blk_Cnt_Tot", only: ssd},
	181: {name: "Program_Fail_Cnt_Total"},
	182: {name: "Erase_Fail_Count_Total", only: ssd},
	183: {name: "Runtime_Bad_Block"},
	184: {name: "End-to-End_Error"},
	187: {name: "Reported_Uncorrect"},
	188: {name: "Command_Timeout", format: wordAlone},
	189: {name: "High_Fly_Writes", only: hdd},
	190: {name: "Airflow_Temperature_Cel", format: warmth},
	191: {name: "G-Sense_Error_Rate", only: hdd},
	192: {name: "Power-Off_Retract_Count"},
	193: {name: "Load_Cycle_Count", only: hdd},
	194: {name: "Temperature_Celsius", format: warmth},
	195: {name: "Hardware_ECC_Recovered"},
	196: {name: "Reallocated_Event_Count", format: word},
	197: {name: "Current_Pending_Sector"},
	198: {name: "Offline_Uncorrectable"},
	199: {name: "UDMA_CRC_Error_Count"},
	200: {name: "Multi_Zone_Error_Rate", only: hdd},
	201: {name: "Soft_Read_Error_Rate", only: hdd},
	202: {name: "Data_Address_Mark_Errs", only: hdd},
	203: {name: "Run_Out_Cancel"},
	204: {name: "Soft_ECC_Correction"},
	205: {name: "Thermal_Asperity_Rate"},
	206: {name: "Flying_Height", only: hdd},
	207: {name: "Spin_High_Current", only: hdd},
	208: {name: "Spin_Buzz", only: hdd},
	209: {name: "Offline_Seek_Performnce", only: hdd},
	220: {name: "Disk_Shift", only: hdd},
	221: {name: "G-Sense_Error_Rate", only: hdd},
	222: {name: "Loaded_Hours", only: hdd},
	223: {name: "Load_Retry_Count", only: hdd},
	224: {name: "Load_Friction", only: hdd},
	225: {name: "Load_Cycle_Count", only: hdd},
	226: {name: "Load-in_Time", only: hdd},
	227: {name: "Torq-amp_Count", only: hdd},
	228: {name: "Power-off_Retract_Count"},
	230: {name: "Head_Amplitude", only: hdd},
	231: {name: "Temperature_Celsius", only: hdd, format: warmth},
	232: {name: "Available_Reservd_Space"},
	233: {name: "Media_Wearout_Indicator", only: ssd},
	240: {name: "Head_Flying_Hours", only: hdd, format: hours},
	241: {name: "Total_LBAs_Written", only: hdd},
	242: {name: "Total_LBAs_Read", only: hdd},
	250: {name: "Read_Error_Retry_Rate"},
	254: {name: "Free_Fall_Sensor", only: hdd},
}
