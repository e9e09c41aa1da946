/** `vivarium read`: the content of a resource. */
import type { Client } from '../../client/index.ts'
import { type ConnectingOptions, connectingOptions, withClient } from '../connecting.ts'
import { CliError } from '../io.ts'
import { gather } from '../lists.ts'
import { contentsText, printerOf, saveContents, whileWaiting } from '../print.ts'
import type { Verb } from '../program.ts'
import { offering, orMeant } from '../server-errors.ts'
import { brief, listCommand } from '../terminal/text.ts'

/** The options of `vivarium read`. */
interface ReadOptions extends ConnectingOptions {
  /** The file in which the content is saved. */
  readonly output?: string
}

/** `vivarium read`. */
export const read: Verb = (command, io) => {
  command
    .argument('[target]', 'the server')
    .argument('[uri]', 'the resource')
    .option('--output <file>', 'Save it, bytes as bytes')
  connectingOptions(command)
    .examples([
      ['vivarium read ./server.ts notes://today', 'print it'],
      ['vivarium read https://example.com/mcp image://logo --output logo.png', 'save it'],
    ])
    .action<ReadOptions>(call =>
      withClient(call, io, async ({ client, label, again, rest: [uri] }) => {
        if (uri === undefined) throw new CliError('No resource is named', `${listCommand(again, 'resources')} shows them`)
        const asked = client
          .readResource(uri, { signal: io.signal })
          .catch(error => orMeant(error, 'resource', uri, () => urisOf(client)))
        const result = await whileWaiting(io, `reading ${brief(uri, 60)}`, offering('resources', label, asked))
        const printer = printerOf(io)
        const { output, format } = call.options
        if (output !== undefined)
          printer.aside.line(printer.aside.paint.dim(`Saved ${await saveContents(output, result.contents)}`))
        else if (format === 'json') printer.json(result)
        else for (const contents of result.contents) printer.line(contentsText(contents, printer))
        return 0
      }),
    )
}

/** The URIs that the server lists, to suggest one for a URI that it does not know. */
async function urisOf(client: Client): Promise<readonly string[]> {
  return (await gather(client.resources())).map(({ uri }) => uri)
}
