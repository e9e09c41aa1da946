/** For tests: the parts of a live connection that nobody listens to. */
import type { LiveConnection } from '../../client/live-handlers.ts'

export const silent: Pick<LiveConnection, 'channels' | 'lifecycle' | 'openChannel' | 'closeChannel'> = {
  channels: new Map(),
  lifecycle: () => {},
  openChannel: async () => ({}),
  closeChannel: async () => {},
}
