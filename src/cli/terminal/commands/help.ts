/** `/help`: what can be typed. */
import type { Command } from '../session.ts'
import { say } from '../text.ts'

export function help(commands: () => readonly Command[]): Command {
  return {
    name: 'help',
    about: 'what can be typed',
    run: async ({ screen }) => {
      const { paint } = screen
      screen.line(` Type to talk. What begins with a slash is a command, or a prompt of a server; // sends a slash.`)
      const rows = commands().map(({ name, takes = '', about }) => [`/${name} ${takes}`, about] as const)
      const width = Math.max(...rows.map(([typed]) => typed.length))
      for (const [typed, about] of rows) screen.line(say` ${paint.name(typed.padEnd(width))} ${paint.dim(about)}`)
      screen.line(say` ${paint.dim('Ctrl-C stops what runs, twice ends; Ctrl-D ends. Tab completes.')}`)
      return undefined
    },
  }
}
