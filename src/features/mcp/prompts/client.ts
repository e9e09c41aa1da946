/** The client's side of prompts: hearing that the list is another one now. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { promptsChanged } from './messages.ts'

export function promptsClient({ onListChanged }: { readonly onListChanged: (exchange: Exchange) => void }): Side {
  return { handlers: [[promptsChanged, onListChanged]] }
}
