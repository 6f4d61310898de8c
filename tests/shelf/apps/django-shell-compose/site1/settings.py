SECRET_KEY = "x"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "site1.urls"
WSGI_APPLICATION = "site1.wsgi.application"
