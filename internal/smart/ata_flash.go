package smart

// These names are shared by several vendors of flash.
var (
	lbas = meanings{241: {name: "Total_LBAs_Written"}, 242: {name: "Total_LBAs_Read"}}

	lifetimeGiB = meanings{241: {name: "Lifetime_Writes_GiB"}, 242: {name: "Lifetime_Reads_GiB"}}
	hostGiB     = meanings{241: {name: "Host_Writes_GiB"}, 242: {name: "Host_Reads_GiB"}}
	host32MiB   = meanings{241: {name: "Host_Writes_32MiB"}, 242: {name: "Host_Reads_32MiB"}}
	totalGiB    = meanings{241: {name: "Total_Writes_GiB"}, 242: {name: "Total_Reads_GiB"}}
)

// ssdFamilies holds the families of solid-state drives. Sources: the vendors' SMART application
// notes (Intel, Micron TN-FD-34, Samsung, Kingston, SandForce) and recorded pages of the models
// named.
var ssdFamilies = []family{
	{[]string{"INTEL SSDSC[2K]K[WF]???[GT]8*"}, "", with(intel, meanings{190: {"Temperature_Case", warmth, 0}, 249: {name: "NAND_Writes_1GiB"}})},
	{[]string{"INTEL SSDSC2[CB][TFW]*", "INTEL SSDMCEA[CW]*", "INTEL SSDSC[2K]K[WF]*6*"}, "", sandForceIntel},
	{[]string{"INTEL SSDSC2BB0??T7*", "INTEL SSDSC[2K]JB*"}, "", with(intel, intelLater, meanings{190: {"Case_Temperature", warmth, 0}, 194: {"Drive_Temperature", warmth, 0}})},
	{[]string{"INTEL SSDSC2K[BG]*", "INTEL SSDSCKK[BG]*"}, "", with(intel, intelLater)},
	{[]string{"INTEL SSDSC2BB*", "INTEL SSDSC2BP*", "INTEL SSDSC2BX*", "INTEL SSDSC1N*"}, "", with(intel, intelDC)},
	{[]string{"INTEL SSDSC2BA*3", "INTEL SSDSC2BA*3?"}, "", with(intel, intelDC)},
	{[]string{"INTEL SSDSA[12][BCN]?*G3*"}, "", with(intel, meanings{170: {name: "Reserve_Block_Count"}})},
	{[]string{"INTEL SSDSA2SH*G1*", "INTEL SSDSA[12]MH*G1*"}, "", meanings{192: intel[192], 225: intel[225],
		226: {name: "Intel_Internal"}, 227: {name: "Intel_Internal"}, 228: {name: "Intel_Internal"}}},
	{[]string{"INTEL SSD*"}, "", intel},
	{[]string{"SSDSC[2K]*[78]R"}, "", with(intel, intelDell)},
	{[]string{"SAMSUNG MZ*", "Samsung SSD *", "SAMSUNG SSD *", "SAMSUNG MMC*", "MK*GWCEV"}, "", samsung},
	{[]string{"MCCOE*", "MMCRE*", "MCBQE*"}, "", meanings{202: {name: unknownSSDName}}},
	{[]string{"Micron_5[123]*", "MTFDDAK*TD?", "MTFDDAK*TC?"}, "", with(micron, micronDC)},
	{[]string{"C300-CTFDD*", "P300-MTFDD*", "MTFDBA[AK]*MAG-*"}, "", with(micronOld, meanings{202: {name: "Percent_Lifetime_Used"}})},
	{[]string{"C400-MTFDD*", "M4-CT*", "MTFDDA[ACK]*MAM-*"}, "", with(micronOld, meanings{202: {name: "Perc_Rated_Life_Used"}})},
	{[]string{"CT*BX[12]00SSD1"}, "", siliconMotion},
	// 197 of this firmware rises to 1 and returns to 0 with every flash refresh.
	{[]string{"CT*MX500SSD*"}, "M3CR0[12]*", with(micron, meanings{197: {name: "Bogus_Current_Pend_Sect"}})},
	{[]string{"CT*[MB]X*SSD*", "CT*M5*SSD*", "Crucial_CT*", "Micron_M5*", "Micron_M600*", "Micron[ _]1[13]00*", "MICRON_M510*",
		"MTFDDA[KV]*M[AB][FY]-*", "MTFDDA[KV]*TBN-*", "MTFDDA[KV]*TDL*"}, "", micron},
	{[]string{"KINGSTON SUV[45]00*"}, "", with(hostGiB, meanings{170: {name: "Reserved_Block_Count"}, 171: {name: "Program_Fail_Count"},
		172: {name: "Erase_Fail_Count"}, 174: {name: "Unexpect_Power_Loss_Ct"}, 201: {name: "Unc_Read_Error_Rate"}, 231: {name: "SSD_Life_Left"}})},
	{[]string{"Kingston SSDNow V Series*"}, "", meanings{232: {name: vendorName}, 233: {name: vendorName}}}, // JMicron: 233 records ECC failures
	{[]string{"Apacer AS3[45]0*"}, "", apacer},
	{[]string{"KINGSTON SKC600*", "ADATA SU[67]*"}, "", meanings{231: {name: "SSD_Life_Left"}}},
	{[]string{"KINGSTON SV[3P]*", "SanDisk SDSSDX[0-9]*", "KINGSTON SH103*", "KINGSTON SHFS*", "KINGSTON SMS200*", "KINGSTON SNS4151*", "KINGSTON SKC[13][08]0*", "KINGSTON SE100*",
		"MKNSSD*", "OWC Mercury E*", "Patriot Pyro*", "ADATA SSD S[35]*", "OCZ-VERTEX[23]*", "OCZ-AGILITY[23]*",
		"OCZ VERTEX[23]*", "OCZ-SOLID3*", "Corsair Force [3G]*", "Corsair CSSD-F*", "ADATA SP[389]00", "ADATA SX900*", "OCZ-REVODRIVE*", "TS*GSSD320", "KINGSTON RBU-SC400*", "SG9XCS2D*"}, "", sandForce},
	{[]string{"KINGSTON SA400*", "KINGSTON SKC4*", "KINGSTON SEDC[45]*", "KINGSTON SKC310*", "KINGSTON SHSS*", "KINGSTON SM2280S3*", "KINGSTON SS200*", "KINGSTON SUV300*", "KINGSTON OCP*", "KINGSTON OM*", "GIGABYTE GP-*",
		"Patriot Burst*", "Patriot Blast*", "Patriot Blaze*", "Corsair Force LE*", "GOODRAM IRIDIUM*", "IR-SSDPR-*"}, "", phison},
	{[]string{"*"}, "S[89AB]F[MK]*", with(phison, meanings{196: {name: "Not_In_Use"}})}, // the controller's own firmware, sold under any brand
	{[]string{"TS*GMTS400*", "TS*GSSD2*", "TS*GSSD370*", "TS*GMTS8*", "ADATA SU[89]*", "ADATA SP550*"}, "", siliconMotion},
	{[]string{"WDC WDS*", "WDC  WDS*", "WDC WDBNCE*", "WD Blue SA510*", "WD Green 2.5*"}, "", with(hostGiB, wdBlue)},
	{[]string{"SanDisk SD5SG2*", "SanDisk SD6S[BF][12]M*1022*", "SanDisk SD[78]S[BN][68][SU]*1122", "SanDisk SD[78]S[BN][68][SU]*1006", "SanDisk SD9S[BN]8W*",
		"SanDisk SSD PLUS*", "SanDisk SSD G5*", "SanDisk SDSSDA-*", "SanDisk SDSSDXPS*", "SanDisk SDSSDH*", "SanDisk Ultra II*"}, "", with(totalGiB, sanDisk, sanDiskNAND)},
	{[]string{"SanDisk SDSSDP*", "SanDisk SDSSDRC*", "SanDisk SSD [iU]1*", "SanDisk SDSA6*", "SanDisk [ip]SSD*", "SanDisk SD7[SU]B[23]Q*"}, "", sanDisk},
	{[]string{"SK?hynix*", "HFS*G3*", "SKhynix*"}, "", hynix},
	{[]string{"OCZ-TRION*", "TOSHIBA-TR150", "TOSHIBA Q300*", "TOSHIBA THNS*"}, "", toshibaFlash},
}

// layouts are the families of solid-state drives by the ids of their attributes, the most specific
// first.
var layouts = []layout{
	{ids: []uint8{168, 170, 173, 192, 218, 231, 241}, meanings: phison},
	{ids: []uint8{168, 170, 175, 176, 225, 229, 235, 240}, meanings: innodisk},
	{ids: []uint8{206, 207, 208, 209, 210, 211, 231}, meanings: maxio},
	{ids: []uint8{167, 169, 173, 175, 180, 231, 233, 234}, meanings: maxio},
	{ids: []uint8{200, 201, 204, 205, 206, 207, 208, 209, 211, 212}, meanings: indilinx},
	{ids: []uint8{160, 161, 163, 164, 165, 166, 167}, meanings: siliconMotion},
}

// innodisk's value of 169 is the life left, like its raw value.
var innodisk = with(host32MiB, meanings{
	5:   {name: "Later_Bad_Block"},
	163: {name: "Total_Bad_Block_Count"},
	165: {name: "Max_Erase_Count"},
	167: {name: "Average_Erase_Count"},
	168: {name: "SATA_PHY_Error_Count"},
	169: {name: "Remaining_Lifetime_Perc"},
	170: {name: "Spare_Block_Count"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	175: {name: "Bad_Cluster_Table_Count"},
	176: {name: "RANGE_RECORD_Count"},
	225: {name: "Data_Log_Write_Count"},
	229: {name: "Flash_ID"},
	232: {name: "Spares_Remaining_Perc"},
	235: {name: "Later_Bad_Blk_Inf_R/W/E"},
	240: {name: "Write_Head"},
})

var apacer = meanings{
	163: {name: "Max_Erase_Count"},
	164: {name: "Average_Erase_Count"},
	166: {name: "Later_Bad_Block_Count"},
	167: {name: "SSD_Protect_Mode"},
	168: {name: "SATA_PHY_Error_Count"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	175: {name: "Bad_Cluster_Table_Count"},
	192: {name: "Unexpect_Power_Loss_Ct"},
	231: {name: "Lifetime_Left"},
}

// maxio is the firmware of JMicron and Maxio. Its 187 does not count uncorrectable errors: 3000 on a new
// drive.
var maxio = meanings{
	5:   {name: "New_Bad_Blk_Cnt"},
	167: {name: "SSD_Protect_Mode"},
	168: {name: "SATA_PHY_Error_Count"},
	169: {name: "Bad_Block_Count"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {"Erase_Count", word, 0},
	175: {name: "Bad_Cluster_Table_Count"},
	177: {name: "Read_Retry_Count"},
	180: {name: "Spare_Block_Count_Left"},
	187: {name: vendorName},
	192: {name: "Unexpect_Power_Loss_Ct"},
	206: {name: "Min_Erase_Count"},
	207: {name: "Max_Erase_Count"},
	208: {name: "Average_Erase_Count"},
	209: {name: "SLC_Min_Erase_Count"},
	210: {name: "SLC_Max_Erase_Count"},
	211: {name: "SLC_Average_Erase_Count"},
	231: {name: "SSD_Life_Left"},
	233: {name: vendorName},
	234: {name: vendorName},
	241: {name: "Total_LBAs_Written"},
	242: {name: "Total_LBAs_Read"},
	245: {name: "Bit_Error_Count"},
}

// indilinx is the firmware of the first Barefoot controller: 195 to 202 count blocks, sectors and
// commands of the whole life.
var indilinx = meanings{
	184: {name: "Initial_Bad_Block_Count"},
	195: {name: "Program_Failure_Blk_Ct"},
	196: {name: "Erase_Failure_Blk_Ct"},
	197: {name: "Read_Failure_Blk_Ct"},
	198: {name: "Read_Sectors_Tot_Ct"},
	199: {name: "Write_Sectors_Tot_Ct"},
	200: {name: "Read_Commands_Tot_Ct"},
	201: {name: "Write_Commands_Tot_Ct"},
	202: {name: "Error_Bits_Flash_Tot_Ct"},
	203: {name: "Corr_Read_Errors_Tot_Ct"},
	204: {name: "Bad_Block_Full_Flag"},
	205: {name: "Max_PE_Count_Spec"},
	206: {name: "Min_Erase_Count"},
	207: {name: "Max_Erase_Count"},
	208: {name: "Average_Erase_Count"},
	209: {name: "Remaining_Lifetime_Perc"},
	211: {name: "SATA_Error_Ct_CRC"},
	212: {name: "SATA_Error_Ct_Handshake"},
	213: {name: "Indilinx_Internal"},
}

var intel = with(host32MiB, meanings{
	170: {name: "Available_Reservd_Space"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	183: {name: "SATA_Downshift_Count"},
	192: {name: "Unsafe_Shutdown_Count"},
	199: {name: "CRC_Error_Count"},
	225: {name: "Host_Writes_32MiB"},
	226: {name: "Workld_Media_Wear_Indic"},
	227: {name: "Workld_Host_Reads_Perc"},
	228: {name: "Workload_Minutes"},
})

var intelDC = meanings{
	174: {name: "Unsafe_Shutdown_Count"},
	175: {"Power_Loss_Cap_Test", word, 0},
	190: {"Temperature_Case", warmth, 0},
	194: {"Temperature_Internal", warmth, 0},
	234: {"Thermal_Throttle", over, 0},
	243: {name: "NAND_Writes_32MiB"},
}

var intelLater = meanings{
	174: {name: "Unsafe_Shutdown_Count"},
	175: {"Power_Loss_Cap_Test", word, 0},
	184: {name: "End-to-End_Error_Count"},
	187: {name: "Uncorrectable_Error_Cnt"},
	190: {"Drive_Temperature", warmth, 0},
	197: {name: "Pending_Sector_Count"},
	234: {"Thermal_Throttle_Status", over, 0},
	235: {"Power_Loss_Cap_Test", word, 0},
	243: {name: "NAND_Writes_32MiB"},
}

// intelDell holds the attributes of the drives that Dell sells under its own part of the name.
var intelDell = meanings{
	174: {name: "Unsafe_Shutdown_Count"},
	195: {name: "Uncorrectable_Error_Cnt"},
	201: {"Power_Loss_Cap_Test", word, 0},
	202: {name: "End_of_Life"},
	233: {name: "Total_LBAs_Written"},
	234: {"Thermal_Throttle_Status", over, 0},
	241: {name: unknownSSDName},
	242: {name: unknownSSDName},
	245: {name: "Percent_Life_Remaining"},
}

var samsung = with(lbas, meanings{
	170: {name: "Unused_Rsvd_Blk_Ct_Chip"},
	171: {name: "Program_Fail_Count_Chip"},
	172: {name: "Erase_Fail_Count_Chip"},
	173: {name: "Wear_Leveling_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	187: {name: "Uncorrectable_Error_Cnt"},
	195: {name: "ECC_Error_Rate"},
	199: {name: "CRC_Error_Count"},
	202: {name: "Exception_Mode_Status"},
	235: {name: "POR_Recovery_Count"},
	243: {name: "SATA_Downshift_Ct"},
	244: {name: "Thermal_Throttle_St"},
	245: {name: "Timed_Workld_Media_Wear"},
	246: {name: "Timed_Workld_RdWr_Ratio"},
	247: {name: "Timed_Workld_Timer"},
	251: {name: "NAND_Writes"},
})

// micron has in 202 the life left as the normalized value and the life used as the raw value.
var micron = meanings{
	5:   {name: "Reallocate_NAND_Blk_Cnt"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {name: "Ave_Block-Erase_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	180: {name: "Unused_Reserve_NAND_Blk"},
	183: {name: "SATA_Interfac_Downshift"},
	184: {name: "Error_Correction_Count"},
	197: {name: "Current_Pending_ECC_Cnt"},
	202: {name: "Percent_Lifetime_Remain"},
	206: {name: "Write_Error_Rate"},
	210: {name: "Success_RAIN_Recov_Cnt"},
	246: {name: "Total_LBAs_Written"},
	247: {name: "Host_Program_Page_Count"},
	248: {name: "FTL_Program_Page_Count"},
}

var micronDC = meanings{
	5:   {"Reallocated_Sector_Ct", word, 0},
	170: {name: "Reserved_Block_Pct"},
	173: {name: "Avg_Block-Erase_Count"},
	180: {name: "Unused_Rsvd_Blk_Cnt_Tot"},
	183: {name: "SATA_Int_Downshift_Ct"},
	184: {name: "End-to-End_Error"},
	197: {name: "Current_Pending_Sector"},
	210: {name: "RAIN_Success_Recovered"},
	211: {name: "Integ_Scan_Complete_Cnt"},
	212: {name: "Integ_Scan_Folding_Cnt"},
	213: {name: "Integ_Scan_Progress"},
	248: {name: "Bckgnd_Program_Page_Cnt"},
}

var micronOld = meanings{
	170: {name: "Grown_Failing_Block_Ct"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {name: "Wear_Leveling_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	181: {"Non4k_Aligned_Access", three, 0},
	183: {name: "SATA_Iface_Downshift"},
	189: {name: "Factory_Bad_Block_Ct"},
	206: {name: "Write_Error_Rate"},
}

var sandForce = with(lifetimeGiB, meanings{
	1:   {"Raw_Read_Error_Rate", over, 0},
	5:   {name: "Retired_Block_Count"},
	9:   {"Power_On_Hours_and_Msec", hoursMsec, 0},
	13:  {"Soft_Read_Error_Rate", over, 0},
	170: {name: "Reserve_Block_Count"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	177: {name: "Wear_Range_Delta"},
	181: {name: "Program_Fail_Count"},
	182: {name: "Erase_Fail_Count"},
	184: {name: "IO_Error_Detect_Code_Ct"},
	189: {"Airflow_Temperature_Cel", warmth, 0},
	195: {"ECC_Uncorr_Error_Count", over, 0},
	198: {"Uncorrectable_Sector_Ct", over, 0},
	199: {name: "SATA_CRC_Error_Count"},
	201: {"Unc_Soft_Read_Err_Rate", over, 0},
	204: {"Soft_ECC_Correct_Rate", over, 0},
	230: {name: "Life_Curve_Status"},
	231: {name: "SSD_Life_Left"},
	233: {name: "SandForce_Internal"},
	234: {name: "SandForce_Internal"},
	235: {name: "SuperCap_Health"},
})

// sandForceIntel holds Intel's own names on SandForce controllers (330, 520).
var sandForceIntel = with(host32MiB, meanings{
	5:   {name: "Reallocated_Sector_Ct"},
	9:   {"Power_On_Hours_and_Msec", hoursMsec, 0},
	170: {name: "Available_Reservd_Space"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	187: {name: "Uncorrectable_Error_Cnt"},
	225: {name: "Host_Writes_32MiB"},
	226: {name: "Workld_Media_Wear_Indic"},
	227: {name: "Workld_Host_Reads_Perc"},
	228: {name: "Workload_Minutes"},
	249: {name: "NAND_Writes_1GiB"},
})

var phison = with(lifetimeGiB, meanings{
	2:   {name: "Not_In_Use"},
	3:   {name: "Not_In_Use"},
	5:   {name: "Retired_Block_Count"},
	7:   {name: "Not_In_Use"},
	8:   {name: "Not_In_Use"},
	10:  {name: "Not_In_Use"},
	167: {name: "Write_Protect_Mode"},
	168: {name: "SATA_Phy_Error_Count"},
	169: {name: "Bad_Block_Rate"},
	170: {"Bad_Blk_Ct_Erl/Lat", badBlocks, 0},
	172: {name: "Erase_Fail_Count"},
	173: {"MaxAvgErase_Ct", average, 0},
	175: {name: "Not_In_Use"},
	181: {name: "Program_Fail_Count"},
	182: {name: "Erase_Fail_Count"},
	192: {name: "Unsafe_Shutdown_Count"},
	193: {name: "Power_Fail_Uncompl_Cnt"},
	195: {name: "Power_Fail_Health"},
	197: {name: "Not_In_Use"},
	199: {name: "SATA_CRC_Error_Count"},
	207: {name: "Thermal_Throttling_Cnt"},
	218: {name: "CRC_Error_Count"},
	231: {name: "SSD_Life_Left"},
	232: {name: "Read_Fail_Count"},
	233: {name: "Flash_Writes_GiB"},
	240: {name: "Not_In_Use"},
	244: {name: "Average_Erase_Count"},
	245: {name: "Max_Erase_Count"},
	246: {name: "Total_Erase_Count"},
})

var siliconMotion = with(host32MiB, meanings{
	160: {name: "Uncorrectable_Error_Cnt"},
	161: {name: "Valid_Spare_Block_Cnt"},
	163: {name: "Initial_Bad_Block_Count"},
	164: {name: "Total_Erase_Count"},
	165: {name: "Max_Erase_Count"},
	166: {name: "Min_Erase_Count"},
	167: {name: "Average_Erase_Count"},
	168: {name: "Max_Erase_Count_of_Spec"},
	169: {name: "Remaining_Lifetime_Perc"},
	178: {name: "Runtime_Invalid_Blk_Cnt"},
	225: {name: "Host_Writes_32MiB"},
	245: {name: "TLC_Writes_32MiB"},
	246: {name: "SLC_Writes_32MiB"},
})

var wdBlue = meanings{
	165: {name: "Block_Erase_Count"},
	166: {name: "Minimum_PE_Cycles_TLC"},
	167: {name: "Max_Bad_Blocks_per_Die"},
	168: {name: "Maximum_PE_Cycles_TLC"},
	169: {name: "Total_Bad_Blocks"},
	170: {name: "Grown_Bad_Blocks"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {name: "Average_PE_Cycles_TLC"},
	174: {name: "Unexpected_Power_Loss"},
	230: {name: "Media_Wearout_Indicator"},
	233: {name: "NAND_GB_Written_TLC"},
	234: {name: "NAND_GB_Written_SLC"},
	244: {name: "Temp_Throttle_Status"},
}

var sanDisk = meanings{
	165: {name: "Total_Write/Erase_Count"},
	166: {name: "Min_W/E_Cycle"},
	167: {name: "Min_Bad_Block/Die"},
	168: {name: "Maximum_Erase_Cycle"},
	169: {name: "Total_Bad_Block"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {name: "Avg_Write/Erase_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	212: {name: "SATA_PHY_Error"},
	230: {"Perc_Write/Erase_Count", three, 0},
	232: {name: "Perc_Avail_Resrvd_Space"},
	234: {name: "Perc_Write/Erase_Ct_BC"},
	244: {name: "Thermal_Throttle"},
}

var sanDiskNAND = meanings{
	199: {name: "SATA_CRC_Error"},
	201: {name: "Lifetime_Remaining%"},
	233: {name: "Total_NAND_Writes_GiB"},
}

var hynix = meanings{
	5:   {name: "Retired_Block_Count"},
	100: {name: "Total_Erase_Count"},
	168: {name: "Min_Erase_Count"},
	169: {name: "Max_Erase_Count"},
	171: {name: "Program_Fail_Count"},
	172: {name: "Erase_Fail_Count"},
	173: {name: "Wear_Leveling_Count"},
	174: {name: "Unexpect_Power_Loss_Ct"},
	176: {name: "Unused_Rsvd_Blk_Cnt_Tot"},
	180: {name: "Erase_Fail_Count"},
	231: {name: "SSD_Life_Left"},
	241: {name: "Total_Writes_GB"},
	242: {name: "Total_Reads_GB"},
}

var toshibaFlash = meanings{
	167: {name: "SSD_Protect_Mode"},
	168: {name: "SATA_PHY_Error_Count"},
	169: {name: "Bad_Block_Count"},
	173: {name: "Erase_Count"},
	192: {name: "Unexpect_Power_Loss_Ct"},
	241: {name: "Host_Writes"},
}
