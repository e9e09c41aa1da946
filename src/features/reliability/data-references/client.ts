/** Client side of data references: declares to every server that the client can fetch content by its address. */
import { defineClientFeature } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { referencesExtension } from './messages.ts'

/** The client feature: declares the extension. */
export const referencesClient = defineClientFeature({
  name: 'data-references',
  options: {},
  setup: () => ({ side: { capabilities: revision => extensionCapability(revision, referencesExtension) } }),
})
