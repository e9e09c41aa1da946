/** Whether a call takes part in a transaction: apart from how it does, because every call is asked. */
import type { Exchange } from '../../../engine/exchange.ts'
import { transactionsExtension } from './messages.ts'

export function takesPart({ meta, carried }: Exchange): boolean {
  if (carried !== undefined && transactionsExtension in carried) return true
  return meta !== undefined && Object.hasOwn(meta, transactionsExtension)
}
