/**
 * Builds the page of the web console into dist/console, beside each file its `.br` and `.gz`, so that the process compresses nothing while it
 * serves. Takes four seconds, so it is done only when something that goes into it has changed.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { listFiles, root } from './lib/files.ts'

const folder = join(root, 'dist', 'console')
/** Not beside the page, which is published as it lies there. */
const stamp = join(root, '.cache', 'console-page.digest')

/** Builds the page, unless the one that is there was made of the same inputs. */
export async function buildConsolePage(): Promise<void> {
  const digest = digestInputs()
  const built = existsSync(join(folder, 'index.html')) && existsSync(stamp)
  if (built && readFileSync(stamp, 'utf8') === digest) return
  const { build } = await import('vite')
  await build({ root: join(root, 'console'), configFile: join(root, 'console', 'vite.config.ts'), logLevel: 'warn' })
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) compress(join(file.parentPath, file.name))
  }
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, digest)
}

function compress(path: string): void {
  const contents = readFileSync(path)
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }))
  writeFileSync(`${path}.br`, brotliCompressSync(contents))
}

/** Its sources, the types it is made with, and the versions of what it is built from. */
function digestInputs(): string {
  const hash = createHash('sha256')
  for (const path of [...listFiles(['console'], /./), 'package-lock.json', 'package.json']) {
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0')
  }
  return hash.digest('hex')
}
