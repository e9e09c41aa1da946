/** `vivarium prompt`: a prompt with its arguments filled in, as a model would get it. */
import type { Client } from '../../client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { givenArguments } from '../arguments.ts'
import { type ConnectingOptions, connectingOptions, targetAbout, withClient } from '../connecting.ts'
import { CliError } from '../io.ts'
import { gather } from '../lists.ts'
import { blockText, printerOf } from '../print.ts'
import type { Verb } from '../program.ts'
import { offered } from '../server-errors.ts'
import { askOptions, type QuestionOptions, ServerQuestions } from '../server-questions.ts'
import { brief, listCommand, say } from '../terminal/text.ts'

/** The options of `vivarium prompt`. */
interface PromptOptions extends ConnectingOptions, QuestionOptions {
  /** All arguments as one JSON object. */
  readonly json?: string
}

/** Arguments of prompts are texts. What the prompt has none of is not dropped unseen; one that is not listed may have any. */
async function schemaOf(client: Client, name: string): Promise<Readonly<Record<string, unknown>>> {
  const listed = (await gather(client.prompts())).find(each => each.name === name)
  if (listed === undefined) return { type: 'object', additionalProperties: { type: 'string' } }
  const properties = Object.fromEntries((listed.arguments ?? []).map(each => [each.name, { type: 'string' }]))
  return { type: 'object', properties, additionalProperties: false }
}

/** `vivarium prompt`. */
export const prompt: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .argument('[name]', 'the name of the prompt')
    .argument('[arguments...]', 'key=value')
    .option('--json <object>', 'Pass all arguments as one JSON object')
  connectingOptions(askOptions(command))
    .examples([['vivarium prompt ./server.ts summarise style=short', 'Print the messages of a prompt']])
    .action<PromptOptions>(async call => {
      const asks = new ServerQuestions(io, call.options)
      const work: Parameters<typeof withClient>[2] = async opened => {
        const {
          client,
          again,
          rest: [name, ...words],
        } = opened
        if (name === undefined)
          throw new CliError('The name of the prompt is missing', `Run ${listCommand(again, 'prompts')} to see the prompts`)
        const schema = words.length === 0 ? {} : await offered('prompts', opened, undefined, schemaOf(client, name))
        const args = await givenArguments(words, call.options.json, schema, name, io)
        const texts = Object.fromEntries(Object.entries(args).map(([key, value]) => [key, String(value)]))
        const waited = asks.screen.work(`getting ${brief(name, 60)}`)
        const result = await offered('prompts', opened, name, client.getPrompt(name, texts, { signal: io.signal })).finally(
          waited,
        )
        const printer = printerOf(io)
        const { paint } = printer
        if (call.options.format === 'json') printer.json(result)
        else {
          if (result.description !== undefined) printer.aside.note(clip(result.description))
          for (const { role, content } of result.messages)
            printer.line(say`${paint.bold(`${role}:`)}${io.output.isTTY === true ? '\n' : ' '}${blockText(content, printer)}`)
        }
        return 0
      }
      try {
        return await withClient(call, io, work, asks.options)
      } finally {
        asks.close()
      }
    })
}
