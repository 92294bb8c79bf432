"""A browser without a window, Debian's Chromium driven by Selenium, and who looks through it."""

import os
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.brokers import until_true
from tests.support_missing import lacks


def chromium():
    """Return a browser; the caller quits it."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        lacks("no Chromium here; type: sudo apt-get install -y chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    words = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    for word in words:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


class Reader:
    """Somebody who looks at the page."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url
        driver.get(url)

    def text(self, part="main"):
        return self.driver.find_element(By.CSS_SELECTOR, part).text

    def until(self, condition):
        until_true(condition)

    def script(self, code, *words):
        return self.driver.execute_script(code, *words)

    def width(self, pixels, height=800):
        """Look through a window of this width, as on a phone."""
        shape = {"width": pixels, "height": height, "deviceScaleFactor": 1}
        shape |= {"mobile": pixels < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)

    def prefers(self, **features):
        named = [{"name": f.replace("_", "-"), "value": v} for f, v in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})
