"""Bills the rows of a file through Purser's workers: python3 producer.py FILE [ENDPOINT]   (needs pyzmq)

The status is 0 when every row is paid, 2 when some are not, and 1 when the file was refused and nothing was sent; run it again as often as you like.
"""
import csv
import re
import sys

import purser_client

# All currencies that Stripe charges, by the digits of their minor unit (docs/input-files.md). One that is not here is refused: a guess would bill a hundredth, or a hundredfold.
CURRENCIES = {
    0: "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf",
    2: "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp byn bzd cad cdf chf cny cop crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip "
       "gmd gtq gyd hkd hnl htg huf idr ils inr isk jmd kes kgs khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen "
       "pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd std szl thb tjs top try ttd twd tzs uah ugx usd uyu uzs wst xcd xcg yer zar zmw",
    3: "bhd jod kwd omr tnd",
}
DIGITS = {code: digits for digits, codes in CURRENCIES.items() for code in codes.split()}


def money(amount, currency):
    """Minor units and the currency's code. Digit by digit: an amount is never a float, and never rounded."""
    code = currency.lower() if currency.isascii() else currency
    if code not in DIGITS:
        raise ValueError(f"{currency!r} is not a currency that Stripe charges")
    read = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]+))?", amount)
    if read is None or len(read[2] or "") > DIGITS[code]:
        raise ValueError(f"{amount!r} {code}: expected plain digits, at most {DIGITS[code]} of them after a point")
    return int(read[1] + (read[2] or "").ljust(DIGITS[code], "0")), code


def bodies_of(file):
    with open(file, encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 1):
            try:
                amount_minor, currency = money(row["amount"] or "", row["currency"] or "")
            except ValueError as error:
                sys.exit(f"{file}: row {number}: {error}; nothing was sent")
            yield f"row-{number}", {
                "customer_id": row["customer_id"], "billing_period": row["billing_period"], "item": row["item"] or None,
                "amount_minor": amount_minor, "currency": currency,
                "stripe_customer_id": row["stripe_customer_id"], "payment_method": row["payment_method"] or None,
            }


def main(file, endpoint="tcp://127.0.0.1:5555", batch=16, **options):
    rows, paid = list(bodies_of(file)), 0  # all of the file is read before anything is sent
    for start in range(0, len(rows), batch):
        bodies = dict(rows[start:start + batch])
        answers = purser_client.charge(endpoint, bodies, **options)
        for name, body in bodies.items():
            fact = answers.get(name, {"_tag": "Unknown"})
            paid += fact["_tag"] == "Succeeded"
            why = fact.get("code") or fact.get("reason", {}).get("_tag") or ("before" if fact.get("alreadySettled") else "")
            print(body["customer_id"], body["billing_period"], fact["_tag"], why, flush=True)
    return 0 if paid == len(rows) else 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
