/** The client's side of cancellation: a cancel of the server reaches what runs for it. */
import { defineClientFeature } from '../../../engine/client-feature.ts'
import { cancellation, sendCancel } from './receiver.ts'

/** Hears that the server gives a request up, and tells it when the client does. */
export const cancellationClient = defineClientFeature({
  name: 'cancellation',
  options: {},
  setup: () => ({ side: cancellation(), engine: { sendCancel } }),
})
