/** The programs in the documentation: all TypeScript of a page, in order, as one file that imports what was built. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
/** Inside the package, so that its own name resolves to what was built. */
export const scratch = join(root, '.cache', `snippets-${process.pid}`)

/** Writes the program of a page; gives its file. */
export async function writeProgram(page: string): Promise<string> {
  const markdown = await readFile(join(root, page), 'utf8')
  const file = join(scratch, `${page.replaceAll(/\W/g, '-')}.ts`)
  await mkdir(scratch, { recursive: true })
  await writeFile(file, snippets(markdown).join('\n'))
  return file
}

export function snippets(markdown: string): string[] {
  return [...markdown.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code)
}
