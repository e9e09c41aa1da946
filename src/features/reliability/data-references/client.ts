/** Using references: that we can take contents by their address is told to every server. */
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { referencesExtension } from './messages.ts'

export function referencesClient(): Side {
  return { capabilities: revision => declaration(revision, referencesExtension) }
}
