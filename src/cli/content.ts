/** What servers give, for people: text as it is, everything else by what it is and how large. */
import { writeFile } from 'node:fs/promises'
import { type Client, dataReference } from '../client/index.ts'
import type { ContentBlock, ResourceContents } from '../features/mcp/content/messages.ts'
import { CliError } from './exit.ts'
import { type Printer, sizeText } from './print.ts'
import { say, type TerminalText } from './terminal/text.ts'

/** A block as lines. */
export function blockText(block: ContentBlock, printer: Printer): TerminalText {
  const { paint } = printer
  switch (block.type) {
    case 'text':
      return printer.foreign(block.text)
    case 'image':
    case 'audio':
      return paint.dim(`[${block.type} ${block.mimeType}, ${sizeText(bytesIn(block.data))}]`)
    case 'resource':
      return contentsText(block.resource, printer)
    case 'resource_link':
      return say`${paint.dim('→')} ${paint.name(block.uri)} ${paint.dim([block.name, block.mimeType].filter(Boolean).join(', '))}`
    default:
      return paint.dim(JSON.stringify(block))
  }
}

export function contentsText({ uri, mimeType, text, blob }: ResourceContents, { paint, foreign }: Printer): TerminalText {
  if (text !== undefined) return foreign(text)
  return paint.dim(`[${uri}: ${mimeType ?? 'bytes'}, ${sizeText(bytesIn(blob ?? ''))}]`)
}

function bytesIn(base64: string): number {
  return Math.floor((base64.length * 3) / 4) - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)
}

/** Saves what there is in one file: its bytes where it has some, what a reference stands for, else its text. Gives what was saved. */
export async function saveBlocks(file: string, blocks: readonly ContentBlock[], client: Client): Promise<string> {
  const referring = blocks.find(block => dataReference(block) !== undefined)
  if (referring !== undefined) {
    const chunks: Uint8Array[] = []
    for await (const chunk of await client.readReference(referring)) chunks.push(chunk)
    return save(file, Buffer.concat(chunks))
  }
  const binary = blocks.flatMap(block => (block.type === 'image' || block.type === 'audio' ? [block.data] : embedded(block)))
  const [first, ...others] = binary
  if (others.length > 0)
    throw new CliError(1, `There are ${binary.length} files in the result, and --output names one`, 'Take --format json')
  if (first !== undefined) return save(file, Buffer.from(first, 'base64'))
  return save(file, blocks.map(block => (block.type === 'text' ? block.text : '')).join('\n'))
}

export function saveContents(file: string, contents: readonly ResourceContents[]): Promise<string> {
  const [first] = contents
  if (contents.length !== 1 || first === undefined)
    throw new CliError(1, `The resource has ${contents.length} parts, and --output names one file`, 'Take --format json')
  return save(file, first.blob === undefined ? (first.text ?? '') : Buffer.from(first.blob, 'base64'))
}

function embedded(block: ContentBlock): readonly string[] {
  return block.type === 'resource' && block.resource.blob !== undefined ? [block.resource.blob] : []
}

async function save(file: string, data: string | Uint8Array): Promise<string> {
  await writeFile(file, data)
  return `${file}, ${sizeText(typeof data === 'string' ? Buffer.byteLength(data) : data.length)}`
}
