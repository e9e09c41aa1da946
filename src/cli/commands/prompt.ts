/** `vivarium prompt`: a prompt with its arguments filled in, as a model would get it. */
import { clip } from '../../jsonrpc/limits.ts'
import { readArguments } from '../arguments.ts'
import { type AskOptions, askOptions, createAsks } from '../asks.ts'
import { type ConnectingOptions, connectingOptions, withClient } from '../connecting.ts'
import { blockText } from '../content.ts'
import { CliError } from '../exit.ts'
import { givenArguments } from '../given.ts'
import { printerOf } from '../print.ts'
import type { Verb } from '../program.ts'

interface PromptOptions extends ConnectingOptions, AskOptions {
  readonly json?: string
}

/** Arguments of prompts are texts. */
const anyTexts = { type: 'object', additionalProperties: { type: 'string' } }

export const prompt: Verb = {
  name: 'prompt',
  summary: 'Fill in a prompt: vivarium prompt TARGET NAME key=value …',
  declare(command, io) {
    command
      .argument('[target]', 'the server')
      .argument('[name]', 'the prompt')
      .argument('[words...]', 'key=value')
      .option('--json <object>', 'All arguments as JSON')
    connectingOptions(askOptions(command))
      .examples([['vivarium prompt ./server.ts summarise style=short', 'the messages it makes']])
      .action<PromptOptions>(async call => {
        const asks = createAsks(io, call.options)
        const work: Parameters<typeof withClient>[2] = async ({ client, rest: [name, ...words] }) => {
          if (name === undefined) throw new CliError(1, 'No prompt is named', 'vivarium list TARGET prompts shows them')
          const args = await givenArguments(words, call.options.json, io, (pairs, known) => readArguments(pairs, anyTexts, known))
          const texts = Object.fromEntries(Object.entries(args).map(([key, value]) => [key, String(value)]))
          const result = await client.getPrompt(name, texts, { signal: io.signal })
          const printer = printerOf(io)
          const { paint } = printer
          if (call.options.format === 'json') printer.json(result)
          else {
            if (result.description !== undefined) printer.aside.line(printer.aside.paint.dim(clip(result.description)))
            for (const { role, content } of result.messages)
              printer.line(`${paint.bold(`${role}:`)} ${blockText(content, printer)}`)
          }
          return 0
        }
        try {
          return await withClient(call, io, work, asks.options)
        } finally {
          asks.close()
        }
      })
  },
}
