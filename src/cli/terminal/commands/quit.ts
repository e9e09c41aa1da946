/** `/quit`: the end, until the next start. */
import type { Command } from '../session.ts'

export const quit: Command = {
  name: 'quit',
  aliases: ['exit', 'q', 'bye'],
  about: 'ends; all is there again at the next start',
  run: async () => true,
}
