/** Hearing that the server's tools have changed. */
import type { Side } from '../../../engine/plan.ts'
import { toolsChanged, toolsChangedDialect } from './messages.ts'

export function toolsClient({ onListChanged }: { readonly onListChanged: () => void }): Side {
  return {
    handlers: [
      [toolsChanged, onListChanged],
      // What the dialect adds has no schema, so the list is read again here too.
      [toolsChangedDialect, onListChanged],
    ],
  }
}
