/** `/help`: what can be typed. */
import type { Command } from '../session.ts'

export function help(commands: () => readonly Command[]): Command {
  return {
    name: 'help',
    about: 'what can be typed',
    run: async ({ screen }) => {
      const { paint } = screen
      screen.line(` Type to talk. What begins with a slash is a command, or a prompt of a server; // sends a slash.`)
      for (const { name, takes = '', about } of commands())
        screen.line(` ${paint.name(`/${name} ${takes}`.padEnd(26))} ${paint.dim(about)}`)
      screen.line(` ${paint.dim('Ctrl-C stops what runs, twice ends; Ctrl-D ends. Tab completes.')}`)
      return undefined
    },
  }
}
