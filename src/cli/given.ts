/** Where arguments come from: `--json`, `@file`, `-` for standard input, and words that add to them. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { json } from './arguments.ts'
import { CliError } from './exit.ts'
import type { Io } from './io.ts'

type Values = Record<string, unknown>

/** What is whole comes first, and words change it. */
export async function givenArguments(
  words: readonly string[],
  whole: string | undefined,
  io: Io,
  read: (pairs: readonly string[], known: Values) => Values,
): Promise<Values> {
  let known: Values = whole === undefined ? {} : objectOf('--json', whole)
  const pairs: string[] = []
  for (const word of words) {
    if (word === '-') known = { ...known, ...objectOf('Standard input', await fromInput(io)) }
    else if (word.startsWith('@')) known = { ...known, ...objectOf(word, await fromFile(word.slice(1))) }
    else pairs.push(word)
  }
  return read(pairs, known)
}

function fromInput({ input }: Io): Promise<string> {
  if (input.isTTY === true)
    throw new CliError(1, '- reads standard input, which is a terminal', 'Pipe JSON into it, or write key=value')
  return text(input)
}

async function fromFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new CliError(1, `The file ${clip(path)} cannot be read`, 'Correct the path', { cause: error })
  }
}

function objectOf(name: string, source: string): Values {
  const value = json(name, source)
  if (isRecord(value)) return { ...value }
  throw new CliError(1, `${clip(name)} is no JSON object`, `Write {"key": "value"}`)
}
