/** The security headers of every answer of the console. */
import { randomBytes } from 'node:crypto'

/** In the page this stands where its nonce belongs. */
export const noncePlaceholder = '{{nonce}}'

/** A nonce for one answer. */
export function newNonce(): string {
  return randomBytes(16).toString('base64url')
}

/** Headers that forbid whatever the page does not need: other origins, inline scripts, frames around it, HTML from text. */
export function securityHeaders(nonce: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "worker-src 'self'",
    "font-src 'self'",
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types vivarium',
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  }
}
