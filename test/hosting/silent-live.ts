/** For tests: the parts of a live connection that nobody listens to. */
import type { LiveConnection } from '../../src/features/live/client-api.ts'

export const silent: Pick<
  LiveConnection,
  'channels' | 'lifecycle' | 'openChannel' | 'closeChannel' | 'stream' | 'typing' | 'acknowledge'
> = {
  channels: new Map(),
  lifecycle: () => {},
  stream: () => undefined,
  typing: () => false,
  acknowledge: async () => undefined,
  openChannel: async () => ({}),
  closeChannel: async () => {},
}
