/** `/quit`: the end, until the next start. */
import type { Command } from '../session.ts'

export const quit: Command = { name: 'quit', about: 'ends; all is there again at the next start', run: async () => true }
