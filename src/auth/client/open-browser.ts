/** Hands an address to the system's browser: no shell, one argument, and only what is an http or https address. */
import { spawn } from 'node:child_process'
import { AuthorizationError } from './failure.ts'

/** Resolves when the browser was asked; whether it shows anything cannot be known. */
export function openBrowser(url: URL, platform: NodeJS.Platform = process.platform): Promise<void> {
  const [command, args] = commandFor(url, platform)
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'ignore', detached: true, shell: false })
    child.once('error', () => reject(new AuthorizationError('browser', `No browser could be started by ${command}`)))
    child.once('spawn', () => {
      child.unref()
      resolve()
    })
  })
}

/** The program and its arguments. The address is what parsing made of it, so it begins with its scheme and holds no blanks. */
export function commandFor(url: URL, platform: NodeJS.Platform): readonly [string, string[]] {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new AuthorizationError('address', 'Only http and https addresses are opened in a browser')
  }
  if (platform === 'darwin') return ['open', [url.href]]
  if (platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url.href]]
  return ['xdg-open', [url.href]]
}
