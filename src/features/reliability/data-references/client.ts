/** Using references: that we can take contents by their address is told to every server. */
import { defineClientFeature } from '../../../engine/client-feature.ts'
import { declaration } from '../../../engine/extensions.ts'
import { referencesExtension } from './messages.ts'

/** Takes contents by their address. */
export const referencesClient = defineClientFeature({
  name: 'data-references',
  options: {},
  setup: () => ({ side: { capabilities: revision => declaration(revision, referencesExtension) } }),
})
