/** Where nothing can be listened on, so that nobody comes back to this machine. */
import { needsNode } from '../../core/required-node.web.ts'
import type { Browser } from './browser.ts'

export function openLoopback(): Required<Pick<Browser, 'authorize'>> & { redirectUri(): Promise<string> } {
  throw needsNode(
    'cli(), which waits for the user on 127.0.0.1,',
    'Give oauth a browser of your own, { redirectUri, authorize }: a page opens a window on the address and hands back its query',
  )
}
