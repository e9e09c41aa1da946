/** `/prompts`: what servers offer to be run as `/name`. */
import { brief } from '../paint.ts'
import type { Command } from '../session.ts'
import { say } from '../text.ts'

export const prompts: Command = {
  name: 'prompts',
  aliases: ['prompt'],
  about: 'what servers offer as /name arguments',
  run: async ({ host, screen }) => {
    const { paint } = screen
    const offered = await host.prompts()
    if (offered.length === 0) screen.line(' No server offers prompts.')
    for (const { command, server, prompt } of offered) {
      const takes = (prompt.arguments ?? []).map(({ name, required }) => (required === true ? name : `[${name}]`)).join(' ')
      screen.line(
        say` ${paint.name(`/${command} ${takes}`.padEnd(30))} ${paint.dim(brief(`${prompt.description ?? ''} (${server})`, 100))}`,
      )
    }
    return undefined
  },
}
