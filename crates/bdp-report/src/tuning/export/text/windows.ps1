# The template of connections with a round trip above 10 ms.
$Template = 'Internet'
$ErrorActionPreference = 'Stop'
$Folder = Join-Path $env:ProgramData 'bdp-tune'
$Record = Join-Path $Folder 'applied.json'
# Lowest first: a plan raises a level, and never lowers it.
$Levels = @('Disabled', 'HighlyRestricted', 'Restricted', 'Normal', 'Experimental')
# By netsh, since cmdlets of Windows 10 and 11 only read these.
$Netsh = @{ CongestionProvider = 'congestionprovider'; InitialCongestionWindowMss = 'icw'; MinRtoMs = 'minrto' }
# Properties of MSFT_NetTCPSetting whose names are not those of the parameters.
$Properties = @{ InitialCongestionWindowMss = 'InitialCongestionWindow'; MinRtoMs = 'MinRto' }

function Get-Setting([string] $Name) {
    $property = if ($Properties.ContainsKey($Name)) { $Properties[$Name] } else { $Name }
    return [string] (Get-NetTCPSetting -SettingName $Template).$property
}

function Set-Setting($Setting, [string] $Value) {
    if ($Setting.Kind -eq 'netsh') {
        $key = $Netsh[$Setting.Name]
        & netsh interface tcp set supplemental "template=$Template" "$key=$Value" | Out-Null
        if ($LASTEXITCODE -ne 0) {
            throw "netsh does not set $($Setting.Name) to '$Value'; this release of Windows may lack it"
        }
    } else {
        $arguments = @{ SettingName = $Template; $Setting.Name = $Value }
        Set-NetTCPSetting @arguments
    }
}

function Get-Target($Setting, [string] $Before) {
    if ($Setting.Name -eq 'AutoTuningLevelLocal' -and [array]::IndexOf($Levels, $Before) -gt [array]::IndexOf($Levels, $Setting.Value)) {
        return $Before
    }
    return $Setting.Value
}

function Assert-Administrator {
    $user = [Security.Principal.WindowsPrincipal] [Security.Principal.WindowsIdentity]::GetCurrent()
    if (-not $user.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
        throw "'$Action' needs a PowerShell of an administrator"
    }
}

function Get-Record {
    if (-not (Test-Path -LiteralPath $Record)) {
        return $null
    }
    $found = Get-Content -LiteralPath $Record -Raw | ConvertFrom-Json
    if ($found.plan -ne $Plan) {
        throw "$Record is the record of another plan; undo that first, by its own script"
    }
    return $found
}

# On the disk before anything is changed.
function Save-Record($Content) {
    New-Item -ItemType Directory -Force -Path $Folder | Out-Null
    # All settings as they are, for anyone who looks for more than this plan changes.
    Get-NetTCPSetting | Select-Object * | ConvertTo-Json -Depth 3 | Set-Content -LiteralPath (Join-Path $Folder 'all-before.json')
    $bytes = [Text.Encoding]::UTF8.GetBytes(($Content | ConvertTo-Json -Depth 4))
    $file = [IO.File]::Open($Record, [IO.FileMode]::CreateNew)
    try {
        $file.Write($bytes, 0, $bytes.Length)
        $file.Flush($true)
    } finally {
        $file.Close()
    }
}

function Undo-Settings($Found) {
    $left = 0
    for ($at = $Settings.Count - 1; $at -ge 0; $at--) {
        $setting = $Settings[$at]
        $before = [string] $Found.before.($setting.Name)
        $now = Get-Setting $setting.Name
        if ($now -eq $before) {
            Write-Output "$($setting.Name): $before, as before"
        } elseif ($now -eq (Get-Target $setting $before)) {
            Set-Setting $setting $before
            Write-Output "$($setting.Name): $before"
        } else {
            $left++
            Write-Warning "left alone: $($setting.Name) is '$now', which is neither what apply set nor what was there ('$before')"
        }
    }
    Remove-Item -LiteralPath $Record
    if ($left -gt 0) {
        exit 3
    }
}

switch ($Action) {
    'apply' {
        Assert-Administrator
        if ($null -ne (Get-Record)) {
            throw "applied already, see $Record; 'status' shows it, 'undo' ends it"
        }
        $before = @{}
        foreach ($setting in $Settings) {
            $before[$setting.Name] = Get-Setting $setting.Name
        }
        Save-Record @{ plan = $Plan; before = $before }
        try {
            foreach ($setting in $Settings) {
                $target = Get-Target $setting $before[$setting.Name]
                Set-Setting $setting $target
                $now = Get-Setting $setting.Name
                if ($now -ne $target) {
                    throw "$($setting.Name) is '$now', and was set to '$target'"
                }
                Write-Output "$($setting.Name): $target"
            }
        } catch {
            $cause = $_
            Undo-Settings (Get-Record)
            throw $cause
        }
        Write-Output "applied; 'undo' ends it"
    }
    'undo' {
        Assert-Administrator
        $found = Get-Record
        if ($null -eq $found) {
            Write-Output 'nothing is applied'
        } else {
            Undo-Settings $found
            Write-Output 'undone'
        }
    }
    'status' {
        $found = Get-Record
        foreach ($setting in $Settings) {
            $now = Get-Setting $setting.Name
            $note = if ($null -eq $found) { '' } else { ", before: $($found.before.($setting.Name))" }
            Write-Output "$($setting.Name): $now (plan: $($setting.Value)$note)"
        }
        if ($null -eq $found) {
            Write-Output 'not applied'
        } else {
            Write-Output 'applied'
        }
    }
}
