/** What a file says of trust, with its mistakes told at their lines. */
import type { Placed } from '../../host/config/jsonc.ts'
import { faultsIn, type TrustFault } from './check.ts'
import { type TrustSettings, trustMembers } from './settings.ts'

type TellFault = (at: Placed, rule: string, message: string, fix: string) => void

/** The settings in the members of a file that are about trust; where some are mistaken, those are told and left out. */
export function readTrust(members: ReadonlyMap<string, Placed>, tell: TellFault): TrustSettings {
  const settings: Record<string, unknown> = {}
  for (const name of trustMembers) {
    const placed = members.get(name)
    if (placed === undefined) continue
    const faults = faultsIn({ [name]: placed.value })
    for (const fault of faults) tell(placeOf(placed, fault), ruleOf(fault), fault.message, fault.fix)
    if (faults.length === 0) settings[name] = placed.value
  }
  return settings
}

/** As near to it as the file goes. */
function placeOf(top: Placed, { path }: TrustFault): Placed {
  let at = top
  for (const part of path.slice(1)) {
    const next = typeof part === 'number' ? at.items?.[part] : at.members?.get(part)
    if (next === undefined) return at
    at = next
  }
  return at
}

function ruleOf({ path }: TrustFault): string {
  return `gateway.${path
    .filter(part => typeof part === 'string')
    .slice(0, 2)
    .join('.')}`
}
