/** `vivarium read`: the content of a resource. */
import type { ResourceContents } from '../../features/mcp/content/messages.ts'
import { type ConnectingOptions, connectingOptions, targetAbout, withClient } from '../connecting.ts'
import { CliError } from '../io.ts'
import { asideOf, blockText, printerOf, saveFile } from '../print.ts'
import type { Verb } from '../program.ts'
import { offered } from '../server-errors.ts'
import { brief, listCommand } from '../terminal/text.ts'

/** The options of `vivarium read`. */
interface ReadOptions extends ConnectingOptions {
  /** The file in which the content is saved. */
  readonly output?: string
}

/** `vivarium read`. */
export const read: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .argument('[uri]', 'the URI of the resource')
    .option('--output <file>', 'Save the resource to a file; binary contents are saved as bytes')
  connectingOptions(command)
    .examples([
      ['vivarium read ./server.ts notes://today', 'Print a resource'],
      ['vivarium read https://example.com/mcp image://logo --output logo.png', 'Save an image'],
    ])
    .action<ReadOptions>(call =>
      withClient(call, io, async opened => {
        const {
          again,
          rest: [uri],
        } = opened
        if (uri === undefined)
          throw new CliError('The URI of the resource is missing', `Run ${listCommand(again, 'resources')} to see the resources`)
        const asked = offered('resources', opened, uri, opened.client.readResource(uri, { signal: io.signal }))
        const result = await asideOf(io).during(`reading ${brief(uri, 60)}`, asked)
        const printer = printerOf(io)
        const { output, format } = call.options
        if (output !== undefined) printer.aside.note(`Saved ${await saveContents(output, result.contents)}`)
        else if (format === 'json') printer.json(result)
        else for (const resource of result.contents) printer.line(blockText({ type: 'resource', resource }, printer))
        return 0
      }),
    )
}

/** Saves a resource in a file; gives what was saved. */
function saveContents(file: string, contents: readonly ResourceContents[]): Promise<string> {
  const [first] = contents
  if (contents.length !== 1 || first === undefined)
    throw new CliError(`The resource has ${contents.length} parts, but --output saves only one`, 'Use --format json')
  return saveFile(file, first.blob === undefined ? (first.text ?? '') : Buffer.from(first.blob, 'base64'))
}
