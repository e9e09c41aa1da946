/** The client's side of being asked whether it is there. Opening itself is the client room's: it decides which era to try. */
import type { Side } from '../../../engine/plan.ts'
import { ping } from './messages.ts'

export function lifecycleClient(): Side {
  return { handlers: [[ping, () => ({})]] }
}
