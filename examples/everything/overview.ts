/** What a server offers, line by line. */
import type { Client } from 'vivarium/client'

export async function* overview(mcp: Client): AsyncGenerator<string, void, undefined> {
  const { server, capabilities, instructions } = mcp
  yield `${server?.title ?? server?.name ?? 'Unnamed server'} ${server?.version ?? ''}`.trimEnd()
  yield `speaks ${mcp.revision}, has ${Object.keys(capabilities).join(', ') || 'no capabilities'}`
  if (instructions !== undefined) yield instructions
  if (capabilities['tools'] !== undefined) yield* section('Tools', mcp.tools(), ({ name, description }) => [name, description])
  if (capabilities['resources'] !== undefined) {
    yield* section('Resources', mcp.resources(), ({ uri, description, name }) => [uri, description ?? name])
    yield* section('Resource templates', mcp.resourceTemplates(), ({ uriTemplate, description, name }) => [
      uriTemplate,
      description ?? name,
    ])
  }
  if (capabilities['prompts'] !== undefined)
    yield* section('Prompts', mcp.prompts(), ({ name, description }) => [name, description])
}

type Row = readonly [name: string, description: string | undefined]

async function* section<T>(
  title: string,
  items: AsyncIterable<T>,
  row: (item: T) => Row,
): AsyncGenerator<string, void, undefined> {
  const rows: Row[] = []
  for await (const item of items) rows.push(row(item))
  const width = Math.min(48, Math.max(0, ...rows.map(([name]) => name.length)))
  yield `\n${title} (${rows.length})`
  // Names and descriptions are foreign text: without control characters they can not play with the terminal.
  for (const [name, description = ''] of rows) yield plain(`  ${name.padEnd(width)}  ${description}`.trimEnd())
}

function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, 400)
}
